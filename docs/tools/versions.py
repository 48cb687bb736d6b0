"""A site of several versions: each has its folder, and the menu of all of them reads what this file lists.

    python docs/tools/versions.py docs/_build/html SITE       # puts the built version into SITE, and lists all in it

``SITE/versions.js`` is for the menu, which works where the site is opened as a file; ``SITE/versions.json`` is the same
for other programs; ``SITE/index.html`` leads to the newest version that has a tag, or to the newest.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tags():
    """Return the versions that have a tag, such as v1.2.0, in git."""
    done = subprocess.run(["git", "-C", str(ROOT), "tag", "--list", "v*"], capture_output=True, text=True, check=False)
    return {tag[1:] for tag in done.stdout.split()}


def order(name):
    """Return what versions are sorted by: numbers as numbers, and what comes before a release before it."""
    numbers = [int(part) for part in re.findall(r"\d+", name)]
    return [*([*numbers, 0, 0, 0])[:3], not re.search(r"[a-z]", name), *numbers[3:]]


def listed(site, released):
    """Return what the menu shows of a site, the newest first: its folders that hold a built version."""
    names = sorted((page.parent.name for page in Path(site).glob("[0-9]*/index.html")), key=order, reverse=True)
    return [{"name": name, "version": name, "title": name if name in released else f"{name} (unreleased)",
             "url": f"{name}/index.html"} for name in names]


def write(site, released):
    """Write the lists of a site and the page that leads to the newest release."""
    versions = listed(site, released)
    text = json.dumps(versions, indent=1)
    first = next((one for one in versions if one["name"] in released), versions[0])["url"]
    files = {"versions.json": f"{text}\n", "versions.js": f"window.dpestimVersions = {text};\n", "index.html":
             f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={first}">'
             f'<title>dpestim</title><a href="{first}">dpestim</a>\n'}
    for name, content in files.items():
        (Path(site) / name).write_text(content, encoding="utf-8")


def main(built, site):
    """Put a built version into a site."""
    sys.path.insert(0, str(ROOT))
    from dpestim.version import __version__

    target = Path(site) / __version__
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(built, target)
    write(site, tags())
    print(f"{target}/index.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
