"""All arguments of a call encoded and checked in one go; whatever is unusual is left to the careful way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from fencerow.core.model.faults import suspicious
from fencerow.core.model.hooks import from_plain
from fencerow.core.model.signature import Parameter, holds_sets
from fencerow.core.model.value import ENCODER

BYTES = (bytes, bytearray, memoryview)
NEVER_TEXT = (int, float, bool, bytes)  # where one of these is declared, bytes cannot arrive as text


class WholeCall:
    """The parameters of one handler as one type.

    Its bytes are those that the arguments have one by one, and what it accepts is what each of them would pass: the
    same encoder, the same decoders, the same look for what JSON cannot keep.
    """

    __slots__ = ("_decode", "_maybe_text")

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        fields = {name: each.annotation for name, each in parameters.items()}
        # Nothing is required: a call may leave out what has a default.
        together: Any = TypedDict("together", fields, total=False)  # type: ignore[misc]
        self._decode = msgspec.json.Decoder(together, dec_hook=from_plain).decode
        self._maybe_text = [name for name, each in fields.items() if each not in NEVER_TEXT]

    @staticmethod
    def of(parameters: Mapping[str, Parameter]) -> WholeCall | None:
        """None where it cannot be: the members of a set are sorted, and with them would be the parameters."""
        if any(holds_sets(each.annotation) for each in parameters.values()):
            return None
        try:
            return WholeCall(parameters)
        except (TypeError, ValueError, NameError):
            return None

    def encode(self, values: Mapping[str, Any]) -> bytes | None:
        """The bytes to store for these arguments; None: look at them one by one, and say what is wrong if anything."""
        for name in self._maybe_text:
            if isinstance(values.get(name), BYTES):
                return None
        try:
            raw = ENCODER.encode(values)
            if suspicious(raw):
                return None
            self._decode(raw)
        except Exception:  # also of a user's own type
            return None
        return raw
