"""Values of declared types to JSON bytes and back, with proof at once that the way back works; size limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypedDict

import msgspec

from fencerow.core.errors import InvalidPayload, MalformedPayload, PayloadTooLarge
from fencerow.core.model.faults import DEPTH_MAX, fault_in_encoded, find_fault
from fencerow.core.model.hooks import from_plain, to_plain
from fencerow.core.model.kept import BYTES, Look, look_for
from fencerow.core.model.signature import Parameter, check_type, holds_sets

PAYLOAD_BYTES_MAX = 1024 * 1024
REASON_LENGTH_MAX = 300
NULL = b"null"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what a stored text may raise
ENCODER = msgspec.json.Encoder(enc_hook=to_plain)
# Sets come in another order in every process, and the same payload must have the same fingerprint everywhere.
# Only used where the type holds a set, because it also sorts the keys of dicts.
SET_ENCODER = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic")

LOCATION = re.compile(r"^(?P<reason>.*?)(?: - at `(?P<where>(?:key in )?\$.*)`)?$", re.DOTALL)
QUOTED_VALUE = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)

NEVER_TEXT = (int, float, bool, bytes)  # where one of these is declared, bytes cannot arrive as text

LONG_DIGITS = 19
LONG_NUMBER = b"0" * LONG_DIGITS
ALL_DIGITS_ZERO = bytes.maketrans(b"123456789", b"000000000")
ONE_KIND = bytes.maketrans(b"{}", b"[]")
NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")

# What a handler's call returned, of whose body nothing has run.
UNRUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


class Misfit(Exception):
    """The value is not of the declared type. `path` starts with `.` or `[`, or is empty."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ValueType:
    """A declared type with its decoder and encoder built once. `lost` finds what did not arrive."""

    decoder: msgspec.json.Decoder[Any]
    encoder: msgspec.json.Encoder
    lost: Look | None

    @staticmethod
    def of(annotation: Any, whose: str) -> ValueType:
        """Prepare a type; `whose` names the parameter or result in messages.

        Raises:
            DeclarationError: values of the type cannot be written as JSON and read back.
        """
        check_type(annotation, whose)
        encoder = SET_ENCODER if holds_sets(annotation) else ENCODER
        return ValueType(msgspec.json.Decoder(annotation, dec_hook=from_plain), encoder, look_for(annotation))

    def pack(self, value: Any, where: str) -> bytes:
        """JSON bytes that `unpack` is known to read, and of which it makes the same value.

        Raises:
            InvalidPayload: something inside cannot be kept as JSON, or would arrive as something else; the path begins
                with `where`.
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
        if isinstance(value, BYTES) and isinstance(arrived, str):
            raise Misfit("", "Expected text, got bytes, which would arrive as base64 text")
        lost = self.lost(value, arrived) if self.lost else None
        if lost:
            raise lost.refusal(where)
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


class WholeCall:
    """The parameters of one handler as one type.

    Its bytes are those that the arguments have one by one, and what it accepts is what each of them would pass: the
    same encoder, the same decoders, the same look for what JSON cannot keep.
    """

    __slots__ = ("_decode", "_looks", "_may_lack", "_maybe_text", "_parameters", "_read")

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters
        self._read: Callable[[bytes], msgspec.Struct] | None = None  # from the first call that is read on
        fields = {name: each.annotation for name, each in parameters.items()}
        # Nothing is required: a call may leave out what has a default.
        together: Any = TypedDict("together", fields, total=False)  # type: ignore[misc]
        self._decode = msgspec.json.Decoder(together, dec_hook=from_plain).decode
        self._may_lack = not all(each.required for each in parameters.values())
        self._maybe_text = [name for name, each in fields.items() if each not in NEVER_TEXT]
        looks = {name: look_for(each) for name, each in fields.items()}
        self._looks = [(name, look) for name, look in looks.items() if look]

    @staticmethod
    def of(parameters: Mapping[str, Parameter]) -> WholeCall | None:
        """None where it cannot be: the members of a set are sorted, and with them would be the parameters."""
        if any(holds_sets(each.annotation) for each in parameters.values()):
            return None
        try:
            return WholeCall(parameters)
        except (TypeError, ValueError, NameError):
            return None

    def read(self, raw: bytes) -> dict[str, Any] | None:
        """The arguments by name, without those that were left out; None: look at them one by one."""
        try:
            if self._read is None:
                self._read = self._reader()
            found = msgspec.structs.asdict(self._read(raw))
        except Exception:  # also of a user's own type
            return None
        if not self._may_lack:
            return found
        return {name: value for name, value in found.items() if value is not msgspec.UNSET}

    def _reader(self) -> Callable[[bytes], msgspec.Struct]:
        """One that refuses what no parameter is named as, which a decoder of a dict passes over."""
        required = [(name, each.annotation) for name, each in self._parameters.items() if each.required]
        rest = [
            (name, each.annotation, msgspec.UNSET)
            for name, each in self._parameters.items()
            if not each.required
        ]
        together = msgspec.defstruct("together", [*required, *rest], kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(together, dec_hook=from_plain).decode

    def encode(self, values: Mapping[str, Any]) -> bytes | None:
        """The bytes to store for these arguments; None: look at them one by one, and say what is wrong if anything."""
        for name in self._maybe_text:
            if isinstance(values.get(name), BYTES):
                return None
        try:
            raw = ENCODER.encode(values)
            if suspicious(raw):
                return None
            arrived: Any = self._decode(raw)
            for name, lost in self._looks:
                if name in values and lost(values[name], arrived[name]):
                    return None
        except Exception:  # also of a user's own type
            return None
        return raw


@dataclass(frozen=True, slots=True)
class ValueCodec:
    """Keeps the result of a job of one declared type."""

    type: ValueType
    payload_bytes_max: int = PAYLOAD_BYTES_MAX

    @staticmethod
    def of(annotation: Any, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX) -> ValueCodec:
        """The codec for one type.

        Raises:
            DeclarationError: values of the type cannot be written as JSON and read back.
        """
        return ValueCodec(ValueType.of(annotation, "the result"), payload_bytes_max)

    def encode(self, value: Any) -> bytes:
        """The bytes to store; None becomes `null`.

        Raises:
            InvalidPayload: the value is not of the declared type, or cannot be kept as JSON faithfully.
            PayloadTooLarge: it exceeds `payload_bytes_max`.
        """
        try:
            raw = self.type.pack(run_whole(value), "result")
        except Misfit as misfit:
            raise InvalidPayload(
                f"result{misfit.path}: {misfit.reason}",
                f"the job returned a {type(value).__name__}",
                "return what the handler's annotation declares, or correct the annotation",
            ) from None
        if len(raw) > self.payload_bytes_max:
            check_size(raw, "the result", self.payload_bytes_max)
        return raw

    def decode(self, raw: bytes) -> Any:
        """The stored result.

        Raises:
            MalformedPayload: the bytes do not fit the declared type. They are not shown.
        """
        try:
            return self.type.unpack(raw)
        except Misfit as misfit:
            raise MalformedPayload(
                f"the stored result does not fit: result{misfit.path}: {misfit.reason}",
                "this code declares another type",
                "read the result with the code that stored it",
            ) from None


def run_whole(value: Any) -> Any:
    """What a handler returned, if it is a value at all.

    Raises:
        InvalidPayload: nobody has awaited or read it. It may be an async function behind a decorator of plain
            functions, which the declaration cannot tell from one that runs it (`asyncio.run`).
    """
    if not isinstance(value, UNRUN):
        return value
    kind = (
        "a coroutine that was not awaited"
        if isinstance(value, CoroutineType)
        else "a generator that was not read"
    )
    if not isinstance(value, AsyncGeneratorType):
        value.close()  # else Python would warn of it at some other place
    raise InvalidPayload(
        f"the handler returned {kind}, so nothing of it has run",
        "a decorator may have made a plain function of an async one",
        "let the decorator's inner function be async and await the handler",
    )


def check_size(raw: bytes, what: str, bytes_max: int) -> None:
    """Refuse what is too large.

    Raises:
        PayloadTooLarge: it exceeds `bytes_max`.
    """
    if len(raw) > bytes_max:
        raise PayloadTooLarge(
            f"{what} takes {len(raw)} bytes",
            f"at most {bytes_max} are kept",
            "store the data elsewhere and pass a reference",
        )


def suspicious(raw: bytes) -> bool:
    """Whether the value behind these bytes must be walked. False proves that there is no fault in it."""
    # Each is a trace that something refused leaves in the bytes: NaN and Infinity as a value (null) or as a key,
    # NUL as the only escape msgspec writes for it, an integer that may exceed 64 bits (19 digits and more).
    # Looked for in a text, which has each byte as a character: in bytes a look takes ten times as long.
    text = raw.decode("latin-1")
    if "null" in text or "\\u0000" in text or 'nan":' in text or 'inf":' in text:
        return True
    if len(raw) < LONG_DIGITS:
        return False  # too short for a long number, and for any depth
    return LONG_NUMBER in raw.translate(ALL_DIGITS_ZERO) or deeper_than(raw, DEPTH_MAX)


def deeper_than(raw: bytes, levels: int) -> bool:
    """Whether arrays and objects are nested more than `levels` deep in valid JSON."""
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    # With the escapes gone every quote begins or ends a text, and only what stands between texts counts.
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(ONE_KIND, NOT_BRACKETS)
    for _ in range(levels):
        # Taking away the empty pairs takes one level from every branch, counted from its inner end.
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)
