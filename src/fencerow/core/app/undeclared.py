"""Results of jobs that do not say what they return."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fencerow.core.model.signature import return_annotation
from fencerow.core.model.value import ValueCodec

log = logging.getLogger("fencerow.app")


def result_codec(name: str, function: Callable[..., Any], payload_bytes_max: int) -> ValueCodec:
    """How the results of this job are kept.

    Raises:
        DeclarationError: they cannot be.
    """
    plain = ValueCodec.of(return_annotation(function), payload_bytes_max=payload_bytes_max)
    declared = inspect.signature(function).return_annotation is not inspect.Signature.empty
    return plain if declared else UndeclaredResult(plain.type, plain.payload_bytes_max, name)


@dataclass(frozen=True, slots=True)
class UndeclaredResult(ValueCodec):
    """Says once where whoever waits gets something else than the job returned."""

    job: str = ""
    told: list[str] = field(default_factory=list, compare=False)

    def encode(self, value: Any) -> bytes:
        raw = ValueCodec.encode(self, value)
        if value is not None and not self.told and not _alike(value, msgspec.json.decode(raw)):
            self._tell(type(value).__name__)
        return raw

    def _tell(self, returned: str) -> None:
        self.told.append(returned)
        log.warning(
            "job %s returned a %s, which arrives as something else: it does not say what it returns, so whoever asks "
            "gets plain JSON data, a list for a set or tuple, text for a datetime. Annotate its result in full; "
            "`-> Any` says that JSON data is wanted",
            self.job,
            returned,
        )


def _alike(value: Any, arrives: Any) -> bool:
    try:
        return bool(value == arrives)
    except Exception:  # of the user's own type
        return False
