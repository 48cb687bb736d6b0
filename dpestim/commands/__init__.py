"""The command line: `dpestim`, thin over the Python interface.

    main         parses arguments, runs one command, and turns errors into one line and an exit code
    parser.py    commands and options, and nothing else: help must come up at once
    streams.py   files, standard streams, tables as text or JSON
    plans.py, surveys.py, reports.py, ledgers.py, audits.py, code_audits.py, proofs.py, demos.py,
    completion.py
                 a command each, or those of one thing

Each command is a function of the parsed arguments that returns an exit code. Data go to the standard output, progress
and messages to the standard error. No command has options that its Python function lacks, but for files.
"""

from dpestim.commands.parser import main

__all__ = ["main"]
