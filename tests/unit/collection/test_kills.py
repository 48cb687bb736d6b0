"""A process that counts is killed at random instants, and several count at once: no report is lost or counted twice.

``python tests/unit/collection/test_kills.py 1000`` kills a thousand times.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from dpestim.collection import Collector, Survey
from dpestim.local import GRRFrequencyEstimator

ROOT = Path(__file__).resolve().parents[3]
N_VALUES = 50
#: What a process does: it makes itself known, and then counts files and batches until all are counted.
WORKER = """
import os, signal, sys, time, traceback
from pathlib import Path
import numpy as np
import dpestim.collection.sources as sources
from dpestim.collection import Collector, Survey
sources.row_count, sources._CUT = (lambda survey: 500), 1 << 13
folder = Path(sys.argv[1])
survey = Survey.load(folder / "survey.json")
def count(collector):
    for path in sorted(folder.glob("batches/*.npy")):
        collector.add(np.load(path), name=path.stem)
    collector.scan(folder / "files" / "*")
def forked():
    # a process forked from this one, which has imported all; it says when it has opened the state, and each transaction
    opened, said = os.pipe()
    child = os.fork()
    if not child:
        try:
            collector = Collector(survey, folder / "state.sqlite", keep_rejected=folder / "rejected")
            enter = collector._enter
            collector._enter = lambda *args: (os.write(said, b"t"), enter(*args))
            os.write(said, b"!")
            count(collector)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(said)
    return child, opened
for line in sys.stdin:
    children = [(forked(), word) for word in line.split()]
    for (child, opened), word in children:
        if word != "-":
            if float(word) >= 0:
                os.read(opened, 1)
            time.sleep(abs(float(word)))
            os.kill(child, signal.SIGKILL)
    for (child, opened), word in children:
        said = 0
        while some := os.read(opened, 1 << 10):
            said += len(some)
        os.close(opened)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said, end=" ")
    print(flush=True)
"""


def prepare(folder, rng):
    """Write the survey, files of all kinds and batches into a folder; returns the counts that there are."""
    survey = Survey(GRRFrequencyEstimator(3.0, categories=[list(range(N_VALUES))]), name="kills")
    survey.save(folder / "survey.json")
    for name in ("files", "batches"):
        (folder / name).mkdir()
    expected = np.zeros(N_VALUES, np.int64)

    def reports(n):
        out = survey.client().privatize(rng.integers(0, N_VALUES, (n, 1)))
        np.add.at(expected, out.ravel(), 1)
        return out

    for number in range(4):
        survey.write(folder / "files" / f"{number}.parquet", reports(1700), nonces=True)
        survey.write(folder / "files" / f"n{number}.parquet", reports(900))
        (folder / "files" / f"{number}.txt").write_text("\n".join(survey.encode_text(reports(600), nonces=True)))
        np.save(folder / "batches" / f"{number}.npy", survey.encode(reports(300), nonces=True))
    damaged = survey.encode(survey.client().privatize([[1]] * 70))
    damaged[:, 9] ^= 1
    np.save(folder / "batches" / "damaged.npy", damaged)
    (folder / "files" / "z.parquet").write_bytes(b"none")
    return survey, expected


def run(kills, seed=0):
    """Kill processes so often, and count to the end now and then; returns what happened, in numbers."""
    rng, done, inside, rounds = np.random.default_rng(seed), 0, 0, 0
    while done < kills or not inside:  # (a slow machine begins no transaction for a while)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            survey, expected = prepare(folder, rng)
            with subprocess.Popen([sys.executable, "-c", WORKER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:

                def tell(line, process=process):
                    process.stdin.write(line + "\n")
                    process.stdin.flush()
                    words = [int(word) for word in process.stdout.readline().split()]
                    return words[::2], sum(words[1::2])

                codes, mean = [-signal.SIGKILL], 0.005
                while 0 not in codes and (done < kills or not inside):
                    # most die in their first transactions, however fast this machine is now; some while they open the
                    # state; and some are two
                    seconds = rng.exponential(mean, 1 + (rng.random() < 0.2)) * (-1 if rng.random() < 0.1 else 1)
                    codes, said = tell(" ".join(f"{each:.5f}" for each in seconds))
                    assert set(codes) <= {0, -signal.SIGKILL}, codes
                    done, inside = done + codes.count(-signal.SIGKILL), inside + (said > 1 and 0 not in codes)
                    mean = min(max(mean * (0.8 if said > 3 else 1.25), 1e-3), 1.0)
                assert tell("- -")[0] == [0, 0]  # two that count at once
                assert tell("-")[0] == [0]
                process.stdin.close()
            check(survey, expected, folder)
            rounds += 1
    return {"kills": done, "after a transaction began": inside, "states": rounds}


def check(survey, expected, folder):
    collector = Collector(survey, folder / "state.sqlite")
    server = collector.server()
    assert np.array_equal(server._counts[0], expected), (server._counts[0] - expected).tolist()
    assert server.n_users_ == expected.sum()
    assert collector.rejected_ == {"damaged": 70, "malformed": 1}, collector.rejected_
    kept = sum(len(path.read_text().splitlines()) for path in (folder / "rejected").glob("*.jsonl"))
    assert kept == 71
    collector.close()


def test_a_process_that_is_killed_loses_nothing():
    found = run(12)
    assert found["kills"] >= 12
    assert found["after a transaction began"]


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int.from_bytes(os.urandom(4), "little")))
