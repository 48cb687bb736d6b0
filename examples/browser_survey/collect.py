"""Ask three questions in a browser, and watch the estimates as reports come in.

Visitors answer in the page (``page.mjs``), where `clients/js/dpestim.mjs` randomises their answers. This server hands
out the survey and the page, counts the reports with a `Collector`, and publishes estimates with their standard errors.
It sees no answer, sets no cookie and writes no log of requests. From the top level of the repository:

    pip install starlette uvicorn
    python examples/browser_survey/collect.py --state reports.sqlite

Then open http://localhost:8000. A page that other machines open must come from https, where browsers have Web Crypto.
"""

import argparse
import math
from pathlib import Path

from dpestim.collection import Collector, Survey
from dpestim.local import GRRFrequencyEstimator, MixedEstimator, PMTransformer

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "examples/browser_survey"
#: What the server hands out, and nothing else.
FILES = {f"{FOLDER}/index.html": "text/html", f"{FOLDER}/page.mjs": "text/javascript",
         "clients/js/dpestim.mjs": "text/javascript"}
#: A message is at most so long: more is not read.
LONGEST = 4096


def survey():
    """Return the survey: three questions, of which each visitor reports some, with an epsilon of 2 in all."""
    return Survey(MixedEstimator([
        ("way", GRRFrequencyEstimator(categories=[["on foot", "by bicycle", "by car", "by bus or train"]]), ["way"]),
        ("copied", GRRFrequencyEstimator(categories=[["no", "yes"]]), ["copied"]),
        ("sleep", PMTransformer(bounds=([0.0], [12.0]), grid=32), ["sleep"]),
    ], epsilon=2.0), name="Three questions", questions={
        "way": "How do you get to work or to school?",
        "copied": "Have you ever copied in an exam?",
        "sleep": "How many hours did you sleep last night?",
    })


def estimates(collector):
    """Return what is published: for each question the estimates with their standard errors, as JSON has them."""
    found = {"n": collector.n_reports_, "rejected": sum(collector.rejected_.values()), "questions": {}}
    if not found["n"]:
        return found
    server = collector.server()
    errors = server.standard_errors_
    for name, shares in server.frequencies_.items():
        found["questions"][name] = [
            {"of": str(value), "estimate": _number(share), "error": _number(error)}
            for value, share, error in zip(server.categories_[name].tolist(), shares, errors[name])]
    for name, mean in server.means_.items():
        found["questions"][name] = [{"of": "mean", "estimate": _number(mean), "error": _number(errors[name])}]
    return found


def _number(value):
    return float(value) if math.isfinite(value) else None


def application(collector):
    """Return the web application around a collector."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

    async def front(request):
        return RedirectResponse(f"/{FOLDER}/index.html")

    async def questions(request):
        return Response(collector.survey.to_json(), media_type="application/json")

    async def results(request):
        return JSONResponse(await run_in_threadpool(estimates, collector), headers={"Cache-Control": "no-store"})

    async def receive(request):
        message = b""
        async for part in request.stream():
            message += part
            if len(message) > LONGEST:
                return Response(status_code=413)
        added = await run_in_threadpool(collector.add, [message])
        return Response(status_code=202 if added.n else 400)

    def file(name, kind):
        async def send(request):
            return FileResponse(ROOT / name, media_type=kind, headers={"Cache-Control": "no-cache"})

        return Route(f"/{name}", send)

    return Starlette(routes=[
        Route("/", front), Route("/survey.json", questions), Route("/estimates", results),
        Route("/reports", receive, methods=["POST"]), *(file(name, kind) for name, kind in FILES.items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--state", default="reports.sqlite", help="the file of the collector, made where there is none")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    try:
        import uvicorn

        app = application(Collector(survey(), given.state))
    except ImportError as error:
        print(f"This example needs {error.name}: pip install starlette uvicorn")
        return
    print(f"The survey is at http://localhost:{given.port}", flush=True)
    # (no log of requests: addresses and times link reports to people)
    uvicorn.run(app, host="127.0.0.1", port=given.port, access_log=False, log_level="warning", server_header=False)


if __name__ == "__main__":
    main()
