"""`dpestim demo`: a survey on real data that come with the package, from plan to report, by the commands themselves."""

from pathlib import Path

from dpestim.commands.parser import DONE, main
from dpestim.commands.streams import say


def run(args):
    """Run the steps, each as the command that a user would type."""
    from dpestim.datasets import load_yrbss
    from dpestim.inputs import Domain

    here = Path(args.output)
    here.mkdir(parents=True, exist_ok=True)
    rows, domain, survey = here / "rows.csv", here / "domain.json", here / "survey.json"
    reports, state, page = here / "reports.jsonl", here / "state.sqlite", here / "report.html"
    for old in (state, reports):
        old.unlink(missing_ok=True)
    data = load_yrbss()
    names = list(data.feature_names)
    keep = [names.index(name) for name in ("gender", "weight", "height")]
    lines = [",".join(str(row[j]) for j in keep) for row in data.data]
    rows.write_text("\n".join(["gender,weight,height", *lines]) + "\n", encoding="utf-8")
    Domain({"gender": ["female", "male"], "weight": (30, 180), "height": (1.2, 2.2)}).save(domain)
    for words in (
        ["survey", "new", "--domain", str(domain), "--epsilon", str(args.epsilon), "--name", "Teenagers",
         "-o", str(survey)],
        ["survey", "check", str(survey)],
        ["privatize", str(rows), "-s", str(survey), "-o", str(reports)],
        ["collect", str(reports), "-s", str(survey), "--state", str(state)],
        ["report", str(state), "--html", str(page)],
    ):
        say("\n$ dpestim " + " ".join(words))
        code = main(words)
        if code != DONE:
            return code
    return DONE
