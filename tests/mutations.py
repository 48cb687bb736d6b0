"""Which checks find planted faults: ``python tests/mutations.py [NAME ...]``, a few minutes for all of them.

Each fault (`mutations.txt`) is one line of the package, written wrongly in a copy. All tests in tests/common that
bear the name of the mechanism run on that copy. The table says what failed: a check that never fails alone may go, and
a fault that nothing finds needs one. A section that is no mechanism, but a module, names its own tests (=).
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [f"tests/common/test_{name}.py" for name in (
    "mechanisms", "strict", "messages", "sklearn", "declarations", "extremes", "audit", "kept_guarantees")]
#: Seconds after which a fault counts as found: it may have made something endless.
PATIENCE = 300

#: The faults: those of a mechanism, and of what it shares with others.
FAULTS = Path(__file__).with_suffix(".txt")


def faults():
    """Return {mechanism or module: [(file, what is right, what is wrong)]}."""
    found, file, right = {}, "", ""
    for line in FAULTS.read_text(encoding="utf-8").splitlines():
        kind, text = line[:2], line[2:].replace("\\n", "\n")
        if line.startswith("["):
            name, *shared = line.strip("[]").split()
            found[name] = [fault for other in shared for fault in found[other]]
        elif kind == "- ":
            right = text
        elif kind == "+ ":
            found[name].append((file, right, text))
        elif line and not line.startswith(("#", "= ")):
            file = line
    return {name: own for name, own in found.items() if "." in name}


def own_tests():
    """Return {module: arguments of pytest}, of sections that name their tests."""
    found, name = {}, ""
    for line in FAULTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]").split()[0]
        elif line.startswith("= "):
            found[name] = [f"tests/unit/{path}" for path in line[2:].split()]
    return found


def main(names):
    """Print what finds each fault, and how often each check was the only one."""
    import pandas  # noqa: F401 (before a process is split: it need not be imported each time)
    import polars  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.utils.estimator_checks  # noqa: F401

    found, alone, planted = Counter(), Counter(), faults()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "dpestim", Path(folder) / "dpestim")
        for name in names or planted:
            for file, right, wrong in [("", "", ""), *planted[name]]:
                path = Path(folder) / "dpestim" / file
                text = path.read_text(encoding="utf-8") if file else ""
                if file:
                    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
                failed = failures(folder, name)
                if file:
                    path.write_text(text, encoding="utf-8")
                found.update(failed)
                alone.update(failed if len(failed) == 1 else ())
                print(f"{name}: {' '.join(wrong.split()) or 'as it is'}: {', '.join(failed) or '-'}", flush=True)
    print("\nalone  in all  check")
    for check, times in found.most_common():
        print(f"{alone[check]:5d}  {times:6d}  {check}")


def failures(folder, name):
    """Return the sorted names of checks that fail in a process of its own, whose package is that of this folder."""
    ends = os.pipe()
    process = os.fork()
    if process:
        os.close(ends[1])
        with os.fdopen(ends[0]) as pipe:
            said = pipe.read()
        os.waitpid(process, 0)
        return json.loads(said) if said else ["it does not end"]
    signal.alarm(PATIENCE)
    sys.dont_write_bytecode = True  # (two faults may be written within one tick of the clock)
    sys.path[:0] = [folder]
    os.chdir(ROOT)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    class Failed:
        seen = set()

        def pytest_runtest_logreport(self, report):
            if report.failed:
                _, _, test = report.nodeid.rpartition("::")
                check = test.rstrip("]").partition("-check_")[2]
                self.seen.add(f"check_{check}" if check else test.partition("[")[0])

    plugin = Failed()
    short = name.rpartition(".")[2]
    tests = own_tests().get(name)
    # (of a module's own tests one that fails is enough: many of them wait for what a broken party never sends)
    chosen = ["-x", "-m", "not ci", *tests] if tests else ["-k", f"{name} or sklearn[{short}]", *FILES]
    code = pytest.main(["-q", "-p", "no:cacheprovider", *chosen], [plugin])
    seen = sorted(plugin.seen) if code in (0, 1) else ["it cannot be imported"]
    with os.fdopen(ends[1], "w") as pipe:
        json.dump(seen, pipe)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
