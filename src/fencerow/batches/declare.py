"""`@app.batch_job`: a function takes many jobs in one call; each is submitted, awaited and retried alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any, Final, get_args, get_origin

from fencerow.batches.item import BatchItem
from fencerow.core.app.declare import Declarer
from fencerow.core.app.handlers import is_async, refuse_generators
from fencerow.core.app.job_options import NO_JOB_OPTIONS, JobOptions, job_options
from fencerow.core.errors import DeclarationError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import VALUE, Handler
from fencerow.core.model.retry import Matchers, RetryRule
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.signature import name_of, parameter_annotations, return_annotation
from fencerow.core.model.value import ValueCodec
from fencerow.db.text import shown

BATCH_MAX: Final = 100
BATCH_MAX_MAX: Final = 1000  # the most that a worker holds for its slots
BATCH_WAIT_S_MAX: Final = 60.0  # what waits is claimed: nobody else can take it meanwhile
SHAPE = "write one parameter annotated Sequence[BatchItem[Value, Result]]"


class DeclareBatchBase:
    """The decorator behind `@app.batch_job` and `@app.batch_job(...)`, as far as it has no types."""

    def __init__(
        self,
        declarer: Declarer,
        options: JobOptions = NO_JOB_OPTIONS,
        batch_max: int = BATCH_MAX,
        batch_wait_s: float = 0.0,
    ) -> None:
        self._declarer = declarer
        self._options = options
        self._batch_max = batch_max
        self._batch_wait_s = batch_wait_s

    def __call__(self, *function: Any, **given: Any) -> Any:
        return self.declared(*function, **given)

    def declared(
        self,
        function: Any = None,
        /,
        *,
        batch_max: int = BATCH_MAX,
        batch_wait_s: Seconds = 0.0,
        **given: Any,
    ) -> Any:
        """Declare the function, or take options for it: these two, and those of `App.job`.

        Raises:
            DeclarationError: the handler's parameter has another form, `batch_max` or `batch_wait_s` is out of
                range, or see `App.job`.
        """
        if function is not None:
            make_handler = partial(batch_handler_of, self._batch_max, batch_wait_s=self._batch_wait_s)
            return self._declarer.declare(function, self._options, make_handler, "@app.batch_job")
        options = job_options(given, "@app.batch_job")
        if options.process:
            raise DeclarationError(
                "@app.batch_job was given process=True",
                "a child process runs one job at a time",
                "declare it with @app.job, or leave process out",
            )
        return type(self)(
            self._declarer, options, _checked_batch_max(batch_max), _checked_batch_wait(batch_wait_s)
        )


def batch_handler_of(
    batch_max: int,
    name: str,
    function: Callable[..., Any],
    limits: Defaults,
    /,
    *,
    retry_on: Matchers,
    fail_on: Matchers,
    payload_bytes_max: int,
    batch_wait_s: float = 0.0,
) -> Handler:
    """The handler of a function that takes a batch.

    Raises:
        DeclarationError: it takes something else, returns something, or its types cannot be kept as JSON.
    """
    refuse_generators(function)
    value, result = _item_types(function)
    return Handler(
        name=name,
        function=function,
        is_async=is_async(function),
        job_parameter=None,
        arguments=ArgumentsCodec.of_value(
            name_of(function), VALUE, value, payload_bytes_max=payload_bytes_max
        ),
        result=ValueCodec.of(result, payload_bytes_max=payload_bytes_max),
        rule=RetryRule(
            attempts_max=limits.attempts_max or 1,
            backoff=limits.backoff or Backoff(),
            retry_on=retry_on,
            fail_on=fail_on,
        ),
        timeout_s=limits.timeout_s,
        batch_max=batch_max,
        batch_wait_s=batch_wait_s,
    )


def _item_types(function: Callable[..., Any]) -> tuple[Any, Any]:
    """The value's and the result's type, from the annotation of the one parameter."""
    given = parameter_annotations(function)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) != 1 or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise DeclarationError(
            f"{name_of(function)} does not take exactly one parameter",
            "a batch handler takes its items and nothing else",
            SHAPE,
        )
    (annotation,) = given.values()
    inner = get_args(annotation)
    item = inner[0] if get_origin(annotation) is Sequence and inner else None
    if get_origin(item) is not BatchItem:
        raise DeclarationError(
            f"parameter {parameters[0].name!r} of {name_of(function)} is {annotation}"[:300],
            "Fencerow reads the types of value and result from it",
            SHAPE,
        )
    if return_annotation(function) not in (None, NoneType, Any):
        raise DeclarationError(
            f"{name_of(function)} is declared to return something",
            "each item gets its own outcome; the handler's result is dropped",
            "call item.succeed(...), and declare -> None",
        )
    value, result = get_args(item)
    return value, result


def _checked_batch_max(batch_max: object) -> int:
    if type(batch_max) is not int or not 1 <= batch_max <= BATCH_MAX_MAX:
        raise DeclarationError(
            f"batch_max is {shown(batch_max)}",
            f"an integer from 1 to {BATCH_MAX_MAX} is expected",
            "correct batch_max",
        )
    return batch_max


def _checked_batch_wait(batch_wait_s: object) -> float:
    wait_s = in_seconds(batch_wait_s)
    if not isinstance(wait_s, int | float) or isinstance(wait_s, bool) or not 0 <= wait_s <= BATCH_WAIT_S_MAX:
        raise DeclarationError(
            f"batch_wait_s is {shown(batch_wait_s)}",
            f"a number of seconds from 0 to {BATCH_WAIT_S_MAX:g} is expected",
            "correct batch_wait_s; jobs that are to wait longer are submitted with delay_s, or with debounce_s",
        )
    return float(wait_s)
