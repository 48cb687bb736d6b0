"""Sums among parties that trust nobody: each process keeps its rows, and the server learns the sum alone.

    terms.py      `SumTerms`: what all agree on: how many may drop out or collude, the graph of neighbours
    keys.py       `Identity`, `Directory`: who signs; keys that two parties agree on
    wire.py       messages as bytes, of which nothing is pickled
    party.py      `SumParty`: messages in, messages out
    server.py     `SumServer`: messages in, messages out
    session.py    `serve`, `join`: over sockets, with TLS
    together.py   `run_together`: all in one process

The proof, who learns what and what is not protected: ``secure_sum.md``.
"""

from dpestim.parties.keys import Directory, Identity
from dpestim.parties.party import SumParty
from dpestim.parties.server import SumServer
from dpestim.parties.session import Certificate, join, serve
from dpestim.parties.terms import SumTerms
from dpestim.parties.together import run_together

__all__ = ["Certificate", "Directory", "Identity", "SumParty", "SumServer", "SumTerms", "join", "run_together", "serve"]
