"""Whether the links of a built site lead somewhere: pages, files and anchors of the site; no page is fetched.

    python docs/tools/link_check.py docs/_build/html              # exits with 1 where a link of the site leads nowhere
    python docs/tools/link_check.py docs/_build/html --external   # lists the addresses of other sites, too

Addresses of other sites are read, not visited: they need https, a host and no blank.
"""

import re
import sys
from html import unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

#: Sites that have no https are none of ours; a name space is no address.
NAMESPACES = ("http://www.w3.org/", "http://localhost")


#: What says where an element is, or where it leads; quotes in text are written otherwise.
ATTRIBUTES = re.compile(r'\s(id|name|href|src)="([^"]*)"')


class Links:
    """The anchors of a page, and where its links, pictures and code lead."""

    def __init__(self, text):
        found = [(name, unescape(value)) for name, value in ATTRIBUTES.findall(text)]
        self.anchors = {value for name, value in found if name in ("id", "name")}
        self.targets = {value for name, value in found if name in ("href", "src") and value}


def checked(site):
    """Return (the number of links, the lines of those that lead nowhere, {address of another site: a page})."""
    files = {path.relative_to(site).as_posix() for path in Path(site).rglob("*") if path.is_file()}
    pages = {name: Links((Path(site) / name).read_text(encoding="utf-8")) for name in sorted(files)
             if name.endswith(".html") and not name.startswith("_static/")}  # (there are templates of the theme)
    if not pages:
        raise SystemExit(f"{site} has no pages: run `make docs` first")
    wrong, others, n = [], {}, 0
    for name, page in pages.items():
        n += len(page.targets)
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                others.setdefault(target, name)
                fault = "" if target.startswith(NAMESPACES) else why_not(target, parts)
            else:
                aim = normpath(join(dirname(name), unquote(parts.path))) if parts.path else name
                aim = aim if aim in files else normpath(join(aim, "index.html"))
                fault = ("it leaves the site" if aim.startswith("../") else
                         "there is no such file" if aim not in files else
                         "" if aim not in pages or leads(pages[aim], unquote(parts.fragment)) else
                         "the page has no such anchor")
            if fault:
                wrong.append(f"{name}: {target}: {fault}")
    return n, wrong, others


def leads(page, fragment):
    """Return whether a page has an anchor; all have a top."""
    return fragment in page.anchors or fragment in ("", "top")


def why_not(target, parts):
    """Return what is wrong about the address of another site, or nothing."""
    if parts.scheme != "https":
        return "write https"
    if "." not in (parts.hostname or "") or any(letter.isspace() for letter in target):
        return "it is no address"
    return ""


def main(site, *options):
    """Print what leads nowhere, and return whether something does."""
    n, wrong, others = checked(site)
    if "--external" in options:
        print("\n".join(sorted(others)))
    print("\n".join(wrong) or f"{n:,} links: all that stay on the site lead somewhere; {len(others):,} addresses of "
          "other sites are well formed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
