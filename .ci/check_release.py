"""Check what `make wheel` built as a release has to be, and write its bill of materials.

The wheel needs no library but the C library's own, and one of a known age (auditwheel). It keeps to the limited API
that its name promises (abi3audit). Built twice, it has the same bytes: the kernels of `make test` were compiled in
another folder and another environment, and packed with the source distribution they make this wheel.
"""

import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import partial
from pathlib import Path

import sbom

ROOT = Path(__file__).resolve().parents[1]
#: The C library that a wheel of this machine may ask for at most: that of Debian 12. Releases are built on older ones.
NEWEST_GLIBC = (2, 36)


def tool(name, *arguments):
    """Return what a tool of the extra "release" prints, or None with a printed reason where it is not installed."""
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed (`pip install dpestim[release]`): not checked")
        return None
    done = subprocess.run([sys.executable, "-m", name, *map(str, arguments)], text=True, capture_output=True)
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def needed(wheel):
    """Return the names of all libraries that the modules of a wheel are linked with."""
    from elftools.elf.elffile import ELFFile  # (auditwheel needs it, too)

    with zipfile.ZipFile(wheel) as packed:
        modules = [packed.read(name) for name in packed.namelist() if name.endswith(".so")]
    tables = [ELFFile(io.BytesIO(module)).get_section_by_name(".dynamic") for module in modules]
    return {tag.needed for table in tables for tag in table.iter_tags("DT_NEEDED")}


def check_libraries(wheel):
    """Nothing outside of the wheel but the C library, in a version that the distributions of its time have."""
    text = tool("auditwheel", "show", wheel)
    if text is not None:
        flat = " ".join(text.split())
        found = re.search(r'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_\w+"', flat)
        assert found, text
        assert "external shared libraries are required" not in flat, text
        libraries = needed(wheel)  # (auditwheel says nothing of libz, libX11 and others that it takes for granted)
        assert libraries <= {"libc.so.6", "libm.so.6"}, libraries
        assert tuple(map(int, found.groups())) <= NEWEST_GLIBC, text
        print(f"auditwheel: {found[0].rpartition(': ')[2]}, libraries: {', '.join(sorted(libraries))}")


def check_abi(wheel):
    """Every module keeps to the limited API of the version in the wheel's name."""
    text = tool("abi3audit", "--strict", "--report", wheel)
    if text is not None:
        report = json.loads(text[text.index("{"):text.rindex("}") + 1])
        results = [one["result"] for each in report["specs"].values() for one in each["wheel"]]
        assert results
        bad = [one for one in results if not one["is_abi3"] or one["non_abi3_symbols"] or one["future_abi3_objects"]]
        assert not bad, bad
        print(f"abi3audit: {len(results)} modules keep to the limited API")


def check_again(wheel, source):
    """Build the wheel once more, of the source distribution and of the kernels in this tree, and compare bytes.

    Two builds have compiled every kernel: that of this tree in `.venv` for the suite, and that of the wheel in an
    environment of its own, in the folder where the source distribution was unpacked.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-xf", source, "-C", folder], check=True)
        (tree,) = Path(folder).glob("*")
        build = partial(subprocess.run, cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        build([sys.executable, "setup.py", "build_py"])
        (built,) = (tree / "build").glob("lib*")
        with zipfile.ZipFile(wheel) as packed:
            kernels = [name for name in packed.namelist() if name.endswith(".so")]
        for name in kernels:
            shutil.copy2(ROOT / name, built / name)
        build([sys.executable, "setup.py", "bdist_wheel", "--skip-build", "--dist-dir", "again"])
        again = tree / "again" / wheel.name
        assert again.exists(), "the second build made no wheel of this name"
        pair = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)]
        assert pair[0] == pair[1], f"two builds differ: {differing(wheel, again)}"
    print(f"the second build has the same bytes, SHA-256 {pair[0]} ({time.monotonic() - began:.0f} s)")


def differing(one, other):
    """Say what two wheels do not share."""
    first, second = zipfile.ZipFile(one), zipfile.ZipFile(other)
    names = {*first.namelist(), *second.namelist()}
    heads = [{entry.filename: (entry.CRC, entry.date_time, entry.external_attr) for entry in z.infolist()}
             for z in (first, second)]
    found = sorted(name for name in names if heads[0].get(name) != heads[1].get(name))
    return f"{len(found)} files: {', '.join(found[:9])}" if found else "the order of entries"


def main(dist):
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    check_libraries(wheel)
    check_abi(wheel)
    assert "SOURCE_DATE_EPOCH" in os.environ, "the time of a build must be declared: run `make release-check`"
    check_again(wheel, source)
    first, second = (sbom.write(wheel).read_bytes() for _ in range(2))
    assert first == second
    print(f"bill of materials: {wheel.with_suffix('.cdx.json').name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
