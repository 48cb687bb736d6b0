"""Code in a process of its own: one that has imported the package, and nothing else, forks for every piece of it.

A new interpreter takes more than a second to import scikit-learn and SciPy; a fork of one that has takes a hundredth.
What is tested about imports themselves, before any, starts an interpreter instead.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections import namedtuple
from functools import cache
from pathlib import Path

HOST = """
import json, os, sys
import dpestim.accounting, dpestim.local
for line in sys.stdin:
    wanted = json.loads(line)
    child = os.fork()
    if not child:
        for number, name in ((0, os.devnull), (1, wanted["out"]), (2, wanted["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        os.environ.clear()
        os.environ.update(wanted["environ"])
        sys.argv = ["-c", *wanted["arguments"]]
        status = 1
        try:
            exec(compile(wanted["code"], "<code>", "exec"), {"__name__": "__main__"})
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

Done = namedtuple("Done", ["returncode", "stdout", "stderr"])


@cache
def _host(pid):
    host = subprocess.Popen([sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(host.communicate)  # it ends where its input does
    return host


def run(code, *arguments):
    """Run code with `arguments` in `sys.argv[1:]`, and return its `Done`, as `subprocess.run` does with text."""
    host = _host(os.getpid())
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        wanted = {"code": code, "arguments": [*map(str, arguments)], "environ": dict(os.environ), "out": str(out),
                  "err": str(err)}
        print(json.dumps(wanted), file=host.stdin, flush=True)
        return Done(int(host.stdout.readline()), out.read_text(), err.read_text())
