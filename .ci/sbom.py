"""Write a bill of materials (CycloneDX 1.6, JSON) of a wheel: what it is, what it holds, what it asks for.

All is read from the wheel: its metadata, its hash, and the hashes of its compiled modules. No library is bundled, so
the components are requirements; which versions are installed is for whoever installs to say. Two runs write the same.
"""

import base64
import hashlib
import json
import os
import re
import sys
import uuid
import zipfile
from datetime import UTC, datetime
from email import message_from_bytes
from pathlib import Path

REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,.-]+\])? *\(?([^;)]*)\)?(?:; *(.*))?")


def component(requirement):
    """Return the component that a requirement of the metadata asks for: needed, or part of an extra."""
    name, versions, when = REQUIREMENT.fullmatch(requirement).groups()
    extra = re.search(r"extra == ['\"]([\w-]+)['\"]", when or "")
    properties = [("dpestim:versions", versions.strip() or "any"), ("dpestim:extra", extra[1] if extra else "")]
    reference = f"requirement:{name}{versions.strip()}{f'[{extra[1]}]' if extra else ''}"
    return {
        "type": "library", "bom-ref": reference, "name": name,
        "purl": f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}",
        "scope": "optional" if extra else "required",
        "properties": [{"name": key, "value": value} for key, value in properties if value],
    }


def bill(wheel):
    """Return the bill of materials of a wheel, as what JSON can hold."""
    packed = zipfile.ZipFile(wheel)
    head = message_from_bytes(packed.read(next(n for n in packed.namelist() if n.endswith(".dist-info/METADATA"))))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    rows = packed.read(next(n for n in packed.namelist() if n.endswith(".dist-info/RECORD"))).decode().splitlines()
    modules = [row.rsplit(",", 2)[:2] for row in sorted(rows) if re.search(r"\.(so|pyd),", row)]
    needed = sorted((component(text) for text in head.get_all("Requires-Dist", [])), key=lambda one: one["bom-ref"])
    needed = [one for one in needed if one["name"] != head["Name"]]  # (an extra that names another extra)
    own = f"pkg:pypi/{head['Name']}@{head['Version']}"
    when = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), UTC)
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}#{digest}')}",
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library", "bom-ref": own, "name": head["Name"], "version": head["Version"], "purl": own,
                "description": head["Summary"], "hashes": [{"alg": "SHA-256", "content": digest}],
                "licenses": [{"license": {"id": head["License-Expression"]}}],
                "components": [
                    {"type": "file", "bom-ref": f"file:{name}", "name": name,
                     "hashes": [{"alg": "SHA-256", "content": base64.urlsafe_b64decode(f"{own_hash[7:]}=").hex()}]}
                    for name, own_hash in modules
                ],
            },
        },
        "components": needed,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in needed if one["scope"] == "required"]}],
    }


def write(wheel):
    """Write the bill beside the wheel; return its path."""
    path = wheel.with_suffix(".cdx.json")
    path.write_text(json.dumps(bill(wheel), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(write(Path(name)))
