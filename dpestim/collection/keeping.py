"""What was rejected, kept in files that only their owner reads: a file of JSON lines for each batch."""

import base64
import json
import os
import secrets

from dpestim.exceptions import CollectionError


def keep(folder, identity, rejected):
    """Write (reason, bytes) into the file of a batch, whole or not at all; again it is the same file."""
    name = os.path.join(os.fspath(folder), f"{identity.hex()}.jsonl")
    draft = f"{name}.{secrets.token_hex(8)}.new"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            for reason, content in rejected:
                text = base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
                file.write(json.dumps({"reason": reason, "content": text}) + "\n")
        os.replace(draft, name)
    except OSError as error:
        raise CollectionError(f"{folder} cannot be written ({error.strerror}), and nothing of this batch was counted: "
                              "free space, or change the permissions") from error
