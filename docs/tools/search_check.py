"""What the search of a built site finds: the site's own code and index answer the queries of `queries.toml` in Node.

    python docs/tools/search_check.py docs/_build/html

The build must be a fresh one: where Sphinx reads only some pages again it forgets the index entries of the others.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
QUERIES = tomllib.loads((HERE / "queries.toml").read_text(encoding="utf-8"))
#: Among how many results the page that answers must be.
FIRST = 3
#: The search's code of Sphinx, with as little of a browser as it asks for; results come with the best at the end.
CODE = """
const fs = require("fs"), vm = require("vm"), [site, queries] = process.argv.slice(1);
const around = { document: { getElementById: () => null }, _: (text) => text, _ready: () => {},
  SPHINX_HIGHLIGHT_ENABLED: false, DOCUMENTATION_OPTIONS: {} };
around.window = vm.createContext(around);
const code = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]
  .map((name) => fs.readFileSync(`${site}/${name}`, "utf8")).join(";");
const found = vm.runInContext(`${code};
  ${queries}.map((query) => Search._performSearch(...Search._parseQuery(query)).reverse()
    .map(([page, title, anchor]) => [page, anchor || "", title]));`, around);
console.log(JSON.stringify(found));
"""


def results(site, queries):
    """Return, for each query, the [page, anchor, title] of what the site finds, the best first."""
    done = subprocess.run(["node", "-e", CODE, str(site), json.dumps(queries)], capture_output=True, text=True,
                          check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"the search of the site does not run in Node:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def unanswered(site, expected):
    """Return a line for each query whose page is not among the first."""
    lines = []
    for (query, pages), found in zip(expected.items(), results(site, list(expected))):
        first = list(dict.fromkeys(page for page, _, _ in found))[:FIRST]
        wanted = [page if "/" in page or not page.startswith("dpestim.") else f"generated/api/{page}" for page in pages]
        if not set(wanted) & set(first):
            lines.append(f"'{query}' finds {', '.join(first) or 'nothing'} first, and not {' or '.join(wanted)}: "
                         "add the words to docs/tools/search.toml")
    return lines


def main(site):
    """Print what is not found, and return how many lines that are."""
    if shutil.which("node") is None:
        print("skipped: the search of the site is asked in Node, and there is none")
        return 0
    lines = unanswered(site, QUERIES)
    if lines:
        lines.append("(is the build a fresh one? remove docs/_build, and run `make docs` again)")
    print("\n".join(lines) or f"the search answers {len(QUERIES)} queries among its first {FIRST} pages")
    return len(lines)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) > 0)
