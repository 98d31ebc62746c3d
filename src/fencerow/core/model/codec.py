"""Arguments to JSON bytes and back.

What is accepted at submit has been decoded once already, so a worker with the same code can decode it too.
The bytes are stored as they are: fingerprint and signature cover them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fencerow.core.errors import ArgumentsTooNew, InvalidArguments, MalformedPayload
from fencerow.core.model.signature import Parameter, name_of, parameters_of, type_shown
from fencerow.core.model.value import (
    NULL,
    PAYLOAD_BYTES_MAX,
    UNREADABLE,
    Misfit,
    ValueType,
    WholeCall,
    check_size,
)

# From the stored version and arguments of it, as JSON data by name, to arguments of the declared version.
Upgrade = Callable[[int, dict[str, Any]], dict[str, Any]]
UPGRADED: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
BY_POSITION = inspect.Parameter.POSITIONAL_ONLY
STORED: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ArgumentsCodec:
    """Binds a call to a handler's parameters and keeps it as a JSON object {parameter: value}.

    `version` is that of the parameters' form. Arguments that were stored in an older one pass through `upgrade`
    before they are read; without it they are read as they are.
    """

    name: str
    parameters: Mapping[str, Parameter]
    types: Mapping[str, ValueType]
    signature: inspect.Signature
    payload_bytes_max: int
    all_by_position: bool  # whether every parameter may be passed so
    all_by_name: bool
    required: frozenset[str]
    whole: WholeCall | None
    version: int = 1
    upgrade: Upgrade | None = None

    @staticmethod
    def of(
        function: Callable[..., Any], job_parameter: str | None, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX
    ) -> ArgumentsCodec:
        """The codec of one handler; `job_parameter` is the one that receives the job, if any.

        Raises:
            DeclarationError: the handler's parameters cannot be stored as JSON; change the handler.
        """
        name = name_of(function)
        found = parameters_of(function, job_parameter)
        types = {
            each.name: ValueType.of(each.annotation, f"parameter {each.name!r} of {name}") for each in found
        }
        return _codec(name, found, types, _signature(function, job_parameter), payload_bytes_max)

    @staticmethod
    def of_value(
        name: str, parameter: str, annotation: Any, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX
    ) -> ArgumentsCodec:
        """The codec of a job that is submitted with one value, kept under the name of that parameter.

        Raises:
            DeclarationError: values of the type cannot be written as JSON and read back.
        """
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        only = Parameter(parameter, annotation, kind, inspect.Parameter.empty)
        signature = inspect.Signature([inspect.Parameter(parameter, kind, annotation=annotation)])
        types = {parameter: ValueType.of(annotation, f"the value of {name}")}
        return _codec(name, (only,), types, signature, payload_bytes_max)

    @property
    def untyped(self) -> list[str]:
        """The parameters whose type nobody said: any JSON data fits, and arrives as such."""
        each = self.signature.parameters.values()
        return [parameter.name for parameter in each if parameter.annotation is parameter.empty]

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The bytes to store for the call `function(*args, **kwargs)`.

        Defaults are not filled in: what the caller left out takes the default of the code that runs later.

        Raises:
            InvalidArguments: they do not fit the parameters.
            InvalidPayload: a value cannot be kept as JSON faithfully.
            PayloadTooLarge: they exceed `payload_bytes_max`.
        """
        values = self._bound(args, kwargs)
        raw = (None if self.whole is None else self.whole.encode(values)) or self._one_by_one(values)
        if len(raw) > self.payload_bytes_max:
            check_size(raw, f"the arguments of {self.name}", self.payload_bytes_max)
        return raw

    def _one_by_one(self, values: Mapping[str, Any]) -> bytes:
        fields = [
            msgspec.json.encode(name) + b":" + self._packed(name, value) for name, value in values.items()
        ]
        return b"{" + b",".join(fields) + b"}"

    def decode(self, raw: bytes, version: int | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and named arguments to call the handler with; positional-only ones come first.

        `version` is the one under which the bytes were stored; None: this code's own.

        Raises:
            ArgumentsTooNew: they were stored by newer code than this.
            MalformedPayload: the stored bytes do not fit this code's parameters. The payload is not shown.
        """
        if version is not None and version != self.version:
            raw = self._upgraded(raw, version)
        if self.whole is not None and self.all_by_name and (read := self.whole.read(raw)) is not None:
            return (), read
        stored = self._stored(raw)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name in stored:
                value = self._unpacked(name, stored[name])
            elif parameter.kind is BY_POSITION:
                value = parameter.default
            else:
                continue
            if parameter.kind is BY_POSITION:
                positional.append(value)
            else:
                named[name] = value
        return tuple(positional), named

    def _upgraded(self, raw: bytes, version: int) -> bytes:
        if version > self.version:
            raise ArgumentsTooNew(
                f"the stored arguments of {self.name} are of version {version}",
                f"this code knows them up to version {self.version}",
                "deploy the code that declares it",
            )
        if self.upgrade is None:
            return raw
        try:
            return msgspec.json.encode(self.upgrade(version, UPGRADED.decode(raw)))
        except Exception as error:
            malformed = self._malformed(f"upgrade from version {version} failed ({type(error).__name__})")
            raise malformed from error

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        # Nearly all calls are as plain as these; `bind` takes several times as long, and says what is wrong.
        if not kwargs and self.all_by_position and len(args) == len(self.parameters):
            return dict(zip(self.parameters, args))  # noqa: B905 - they are as many, and strict takes twice as long
        if (self.all_by_position or not args) and (self.all_by_name or not kwargs):
            values = dict(zip(self.parameters, args))  # noqa: B905 - strict, it takes twice as long
            known = len(args) <= len(self.parameters)
            if kwargs:
                both = {**values, **kwargs}
                known = (
                    known and len(both) == len(values) + len(kwargs) and both.keys() <= self.parameters.keys()
                )
                values = {name: both[name] for name in self.parameters if name in both}
            if known and self.required <= values.keys():
                return values
        try:
            return dict(self.signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            given = [f"{len(args)} positional", *sorted(ascii(name)[:60] for name in kwargs)]
            raise InvalidArguments(
                f"{self.name}: {error}",
                f"expected {self._shown()}, got {', '.join(given)}",
                "pass the parameters by name",
            ) from None

    def _packed(self, name: str, value: Any) -> bytes:
        try:
            return self.types[name].pack(value, name)
        except Misfit as misfit:
            expected = type_shown(self.parameters[name].annotation)
            raise InvalidArguments(
                f"argument {name}{misfit.path} of {self.name}: {misfit.reason}",
                f"{name} is declared as {expected}, a {type(value).__name__} was passed",
                "pass a value of the declared type",
            ) from None

    def _stored(self, raw: bytes) -> dict[str, msgspec.Raw]:
        try:
            stored = STORED.decode(raw)
        except (ValueError, RecursionError) as error:
            raise self._malformed(f"they are not a JSON object ({type(error).__name__})") from None
        if stored.keys() != self.parameters.keys():
            self._refuse_misfits(stored)
        return stored

    def _refuse_misfits(self, stored: Mapping[str, msgspec.Raw]) -> None:
        for name in stored:
            if name not in self.parameters:
                raise self._malformed(f"there is no parameter {ascii(name)[:60]}")
        for name, parameter in self.parameters.items():
            if parameter.required and name not in stored:
                raise self._malformed(f"the parameter {name!r} is missing")

    def _unpacked(self, name: str, raw: msgspec.Raw) -> Any:
        try:
            return self.types[name].unpack(raw)
        except Misfit as misfit:
            raise self._malformed(f"{name}{misfit.path}: {misfit.reason}") from None

    def _malformed(self, reason: str) -> MalformedPayload:
        return MalformedPayload(
            f"the stored arguments of {self.name} do not fit: {reason}",
            f"this code expects {self._shown()}",
            "give a new parameter a default, or raise args_version and write upgrade= (docs/guide.md), and "
            "`fencerow jobs revive` what has failed; or run the code that fits",
        )

    def _shown(self) -> str:
        texts = [name if each.required else f"{name} (optional)" for name, each in self.parameters.items()]
        return f"({', '.join(texts)})"


def _codec(
    name: str,
    found: Iterable[Parameter],
    types: Mapping[str, ValueType],
    signature: inspect.Signature,
    payload_bytes_max: int,
) -> ArgumentsCodec:
    parameters = {each.name: each for each in found}
    kinds = {each.kind for each in parameters.values()}
    return ArgumentsCodec(
        name,
        parameters,
        types,
        signature,
        payload_bytes_max,
        all_by_position=inspect.Parameter.KEYWORD_ONLY not in kinds,
        all_by_name=BY_POSITION not in kinds,
        required=frozenset(each.name for each in parameters.values() if each.required),
        whole=WholeCall.of(parameters),
    )


def _signature(function: Callable[..., Any], job_parameter: str | None) -> inspect.Signature:
    declared = inspect.signature(function)
    kept = [each for each in declared.parameters.values() if each.name != job_parameter]
    return inspect.Signature(kept)


class _Version(msgspec.Struct, frozen=True):
    args_version: int = 1


def inline_args(args: msgspec.Raw) -> bytes | None:
    """The arguments as they were submitted, if they came with the claim."""
    text = bytes(args)
    return None if text == b"null" else text


def args_version_of(stored: bytes) -> int:
    """The version under which the arguments were stored. What cannot be read counts as the first."""
    if stored == NULL:
        return 1
    try:
        return msgspec.json.decode(stored, type=_Version).args_version
    except UNREADABLE:
        return 1
