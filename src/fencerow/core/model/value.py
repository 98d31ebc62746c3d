"""One value of one declared type: to JSON bytes and back, with proof at once that the way back works."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from fencerow.core.errors import InvalidPayload
from fencerow.core.model.faults import fault_in_encoded, find_fault, suspicious
from fencerow.core.model.hooks import from_plain, to_plain
from fencerow.core.model.signature import check_type, holds_sets

REASON_LENGTH_MAX = 300
NULL = b"null"
ENCODER = msgspec.json.Encoder(enc_hook=to_plain)
# Sets come in another order in every process, and the same payload must have the same fingerprint everywhere.
# Only used where the type holds a set, because it also sorts the keys of dicts.
SET_ENCODER = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic")

LOCATION = re.compile(r"^(?P<reason>.*?)(?: - at `(?P<where>(?:key in )?\$.*)`)?$", re.DOTALL)
QUOTED_VALUE = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)


class Misfit(Exception):
    """The value is not of the declared type. `path` starts with `.` or `[`, or is empty."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ValueType:
    """A declared type with its decoder and encoder built once."""

    decoder: msgspec.json.Decoder[Any]
    encoder: msgspec.json.Encoder

    @staticmethod
    def of(annotation: Any, whose: str) -> ValueType:
        """Prepare a type; `whose` names the parameter or result in messages.

        Raises:
            DeclarationError: values of the type cannot be written as JSON and read back.
        """
        check_type(annotation, whose)
        encoder = SET_ENCODER if holds_sets(annotation) else ENCODER
        return ValueType(msgspec.json.Decoder(annotation, dec_hook=from_plain), encoder)

    def pack(self, value: Any, where: str) -> bytes:
        """JSON bytes that `unpack` is known to read.

        Raises:
            InvalidPayload: something inside cannot be kept as JSON; the path begins with `where`.
            Misfit: the value is not of the declared type.
        """
        if value is None:  # what most jobs return; its bytes would look like a NaN's
            self.unpack(NULL)
            return NULL
        raw = self._encoded(value, where)
        fault = fault_in_encoded(value) if suspicious(raw) else None
        if fault:
            raise fault.refusal(where)
        arrived = self.unpack(raw)
        if isinstance(value, (bytes, bytearray, memoryview)) and isinstance(arrived, str):
            raise Misfit("", "Expected text, got bytes, which would arrive as base64 text")
        return raw

    def unpack(self, raw: bytes | msgspec.Raw) -> Any:
        """The value behind JSON bytes.

        Raises:
            Misfit: they are not of the declared type. The reason never repeats a value.
        """
        try:
            return self.decoder.decode(raw)
        except RecursionError:
            raise Misfit("", "nested too deeply") from None
        except msgspec.ValidationError as error:
            raise _misfit(error) from None
        except Exception as error:
            # A constructor of the user's own type may raise anything, with anything in its message.
            raise Misfit("", f"it cannot be read ({type(error).__name__})") from None

    def _encoded(self, value: Any, where: str) -> bytes:
        try:
            return self.encoder.encode(value)
        except Exception as error:
            fault = find_fault(value)
            if fault:
                raise fault.refusal(where) from None
            raise InvalidPayload(
                f"{where} cannot be written as JSON ({type(error).__name__})",
                str(error)[:REASON_LENGTH_MAX],
                "pass plain data",
            ) from None


def _misfit(error: msgspec.ValidationError) -> Misfit:
    found = LOCATION.match(str(error))
    reason, where = (found["reason"], found["where"] or "") if found else (str(error), "")
    reason = QUOTED_VALUE.sub(r"\1", reason)
    return Misfit(where.removeprefix("key in ").removeprefix("$"), reason[:REASON_LENGTH_MAX])
