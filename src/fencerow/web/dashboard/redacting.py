"""What is secret is hidden before it comes to a page; the row keeps it whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencerow.core.app.declare import DeclaredBase
from fencerow.payloads.hiding import hidden_arguments, hidden_result

DEPTH_MAX = 64
# Words of names behind which secrets stand. `key` alone is no such word: an idempotency key is shown.
SECRET = re.compile(
    r"pass(word|wd|phrase|code)?$|secret|token|credential|authori[sz]ation|cookie|session_?id|signature|"
    r"(api|private|access|signing|encryption)_?key|_pin$|^pin$|cvv|iban|card_?number|\bdsn\b|connection_?string",
    re.IGNORECASE,
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A secret inside of a text: the password of a URL, the value of a header. Nothing before the `://` is looked for: at
# each letter of a long word that would read the rest of the word.
IN_TEXT = re.compile(r"(?P<before>://[^\s/:@]*:|\b(?:bearer|basic)\s+)(?P<secret>[^\s@]+)", re.I)

Redact = Callable[[str, Any], Any]
Declared = DeclaredBase[..., ..., Any, Any]


@dataclass(frozen=True, slots=True)
class Redacted:
    """Stands where a secret was; `length` is that of its text."""

    length: int

    def __str__(self) -> str:
        return f"hidden, {self.length} characters"


@dataclass(frozen=True, slots=True)
class Redactor:
    """Hides what is declared as secret, then what its name calls secret, then what the host's own function hides.

    `own`: given the job's name and data that may be shown; it returns what shall be shown. `jobs`: the declared jobs
    by name, as far as they are known here.
    """

    own: Redact | None = None
    jobs: Mapping[str, Declared] = field(default_factory=dict)

    def arguments(self, job: str, data: Any) -> Any:
        """Arguments of the job of this name, as `shown`."""
        return self.shown(job, hidden_arguments(self.jobs.get(job), data, _veiled))

    def result(self, job: str, data: Any) -> Any:
        """A result of the job of this name, as `shown`."""
        return self.shown(job, hidden_result(self.jobs.get(job), data, _veiled))

    def shown(self, job: str, data: Any) -> Any:
        """The data with `Redacted` where secrets were. It is a copy."""
        hidden = _hidden(data, 0)
        return hidden if self.own is None else self.own(job, hidden)


def _veiled(value: Any) -> Redacted:
    return Redacted(len(str(value)))


def text_without_secrets(text: str) -> str:
    """A text, as a traceback, without passwords of URLs and values of headers."""
    return IN_TEXT.sub(lambda found: f"{found['before']}(hidden)", text)


def is_secret(name: str) -> bool:
    """Whether what stands behind such a name is secret."""
    return SECRET.search(CAMEL.sub("_", name).replace("-", "_")) is not None


def _hidden(data: Any, depth: int) -> Any:
    if depth > DEPTH_MAX:
        return Redacted(len(repr(data)))
    if isinstance(data, Mapping):
        return {
            name: _veiled(value)
            if is_secret(str(name)) and value not in (None, "", True, False)
            else _hidden(value, depth + 1)
            for name, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [_hidden(each, depth + 1) for each in data]
    return text_without_secrets(data) if isinstance(data, str) else data
