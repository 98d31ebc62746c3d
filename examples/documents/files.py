"""Where documents lie: in a folder that all workers share, each under the SHA-256 of what is in it."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from pathlib import Path

FOLDER = "DOCUMENTS_FOLDER"


def keep(content: str) -> str:
    """Keep a document that came in base64; returns the name of its file. It may be repeated."""
    data = base64.b64decode(content, validate=True)
    name = hashlib.sha256(data).hexdigest()
    with tempfile.NamedTemporaryFile(dir=file_of(name).parent, delete=False) as made:
        made.write(data)
    Path(made.name).replace(file_of(name))  # whole, or not there
    return name


def file_of(name: str) -> Path:
    """The file of that name."""
    return Path(os.environ.get(FOLDER, ".")) / name
