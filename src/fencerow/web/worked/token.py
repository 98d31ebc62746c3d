"""The token of one attempt: told to its endpoint with the request, and kept as a digest alone."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "fwt_"
SECRET_BYTES: Final = 32
FORM: Final = re.compile(r"fwt_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class AttemptToken:
    """Who has it may answer this attempt, once. Neither `str` nor `repr` shows it; `text` does."""

    text: str = field(repr=False)

    @classmethod
    def new(cls) -> AttemptToken:
        """One that nobody can guess."""
        raw = base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).decode().rstrip("=")
        return cls(PREFIX + raw)

    @classmethod
    def parsed(cls, text: str | None) -> AttemptToken | None:
        """The token that this text is; None: it is none."""
        return cls(text) if text is not None and FORM.fullmatch(text) else None

    @property
    def digest(self) -> str:
        """What the database keeps of it."""
        return hashlib.sha256(self.text.encode()).hexdigest()
