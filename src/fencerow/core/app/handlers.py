"""From a function to the handler that workers run."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from fencerow.core.app.undeclared import result_codec
from fencerow.core.errors import DeclarationError, InvalidArguments, MalformedPayload
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.change import DATA
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.retry import Matchers, RetryRule
from fencerow.core.model.signature import name_of
from fencerow.core.worker.context import Job


def handler_of(
    name: str,
    function: Callable[..., Any],
    limits: Defaults,
    *,
    retry_on: Matchers,
    fail_on: Matchers,
    payload_bytes_max: int,
) -> Handler:
    """The handler of a function under these limits.

    Raises:
        DeclarationError: its parameters or its result cannot be kept as JSON, or a rule makes no sense.
    """
    refuse_generators(function)
    job_parameter = job_parameter_of(function)
    return Handler(
        name=name,
        function=function,
        is_async=is_async(function),
        job_parameter=job_parameter,
        arguments=ArgumentsCodec.of(function, job_parameter, payload_bytes_max=payload_bytes_max),
        result=result_codec(name, function, payload_bytes_max),
        rule=RetryRule(
            attempts_max=limits.attempts_max or 1,
            backoff=limits.backoff or Backoff(),
            retry_on=retry_on,
            fail_on=fail_on,
        ),
        timeout_s=limits.timeout_s,
    )


def encode_json_data(codec: ArgumentsCodec, arguments: Mapping[str, Any]) -> bytes:
    """The bytes to store for arguments that are JSON data already, not values of the declared types.

    They are read as the worker will read them, and the values found there are encoded again, so that the same
    call has the same bytes, and one idempotency key, wherever it comes from.

    Raises:
        InvalidArguments: they do not fit the parameters.
        InvalidPayload, PayloadTooLarge: they cannot be kept.
    """
    raw = DATA.pack(dict(arguments), "arguments")
    try:
        positional, named = codec.decode(raw)
    except MalformedPayload as error:
        raise InvalidArguments(
            error.what.replace("stored ", "", 1),
            error.why,
            "give each parameter by its name, with a value of its type",
        ) from None
    return codec.encode(positional, named)


def job_parameter_of(function: Callable[..., Any]) -> str | None:
    """The parameter that takes the running job: the first one, if it is annotated `Job` (or `Job | None`).

    Raises:
        DeclarationError: a later parameter is annotated so.
    """
    parameters = list(inspect.signature(function).parameters.values())
    found = [number for number, each in enumerate(parameters) if _means_job(each.annotation, function)]
    if not found:
        return None
    if found != [0]:
        raise DeclarationError(
            f"parameter {parameters[found[-1]].name!r} of {name_of(function)} is annotated Job",
            "the running job is passed as the first parameter, once",
            "move it to the front",
        )
    return parameters[0].name


def _means_job(annotation: Any, function: Callable[..., Any]) -> bool:
    if isinstance(annotation, str):
        # Only names that can stand for the job are looked up: others may exist for type checkers alone.
        if "Job" not in annotation:
            return False
        annotation = _looked_up(annotation, function)
    if _is_job(annotation):
        return True
    return get_origin(annotation) in (Union, UnionType) and any(map(_is_job, get_args(annotation)))


def _is_job(annotation: Any) -> bool:
    """Whether it is the core's, or what wings have given verbs."""
    return isinstance(annotation, type) and issubclass(annotation, Job)


def _looked_up(annotation: str, function: Callable[..., Any]) -> Any:
    holder: Any = type("holder", (), {"__annotations__": {"it": annotation}})
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(holder, scope)["it"]
    except Exception:
        # Imported under TYPE_CHECKING: then the text itself is all there is to go by.
        return Job if annotation in ("Job", "fencerow.Job") else None


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
    )


def refuse_generators(function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(
            f"{name_of(function)} is a generator",
            "a job returns one result",
            "return a list, or store what it makes as it goes",
        )
