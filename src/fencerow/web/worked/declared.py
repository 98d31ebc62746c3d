"""`worked_over_http`: the function below it is a name and types; an HTTP endpoint does the work.

@app.job(queue="render", timeout_s=120)
@worked_over_http(app, "https://render.example.com/jobs", secret_env="RENDER_KEY")
def render(document: str, pages: int = 1) -> Rendered: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from fencerow.core.app.app import JobsApp
from fencerow.core.app.handlers import is_async, job_parameter_of, refuse_generators
from fencerow.core.errors import DeclarationError
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.signature import name_of, return_annotation
from fencerow.core.model.value import ValueType
from fencerow.core.worker.context import Job
from fencerow.web.webhooks.addresses import target_of
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.worked.endpoint import (
    ANSWER_S,
    DEFAULT_REPLY_BYTES_MAX,
    REPLY_S,
    endpoint_of,
)
from fencerow.web.worked.known import WORKING
from fencerow.web.worked.waker import OverdueWaker
from fencerow.web.worked.working import WorkedOverHttp

P = ParamSpec("P")
R = TypeVar("R")

ARGS_BYTES_MAX: Final = 2**31  # their size was judged at the submit
JOB: Final = "fencerow_job"  # the parameter of the running job: a name that no function of a user has


def worked_over_http(
    app: JobsApp,
    url: str,
    *,
    secret_env: str,
    callbacks: str | None = None,
    reply_s: Seconds = REPLY_S,
    reply_bytes_max: int = DEFAULT_REPLY_BYTES_MAX,
    answer_s: Seconds = ANSWER_S,
    heartbeat_s: Seconds | None = None,
    keeps_slot: bool = False,
    cancel_url: str | None = None,
) -> Callable[[Callable[P, R]], Callable[Concatenate[Job, P], Coroutine[Any, Any, R]]]:
    """Let an HTTP endpoint, in any language, do the work of a job: a decorator below `@app.job` or `@app.handles`.

    Each attempt is one POST to `url`, signed by the secret in the environment variable `secret_env` of the worker; the
    reply 200 is the result. The decorated function is never called: it says the name, the parameters and the result.

    `callbacks`: the address of your gateway as the endpoint reaches it. With it the endpoint may reply 202 and answer
    later, within `answer_s` of the request and with a heartbeat at least every `heartbeat_s`. The job waits without a
    slot then, and without its turns; with `keeps_slot` it keeps both, and the attempt's `timeout_s` bounds the wait.
    `reply_s`: how long to wait for the reply; `reply_bytes_max`: how large it may be. `cancel_url`: where a signed POST
    tells the endpoint, at most once, that an attempt it works on was cancelled; the cancel never waits for that.

    Raises:
        DeclarationError: an option or the function cannot be used.
        WebhookUrlRefused: requests may not go to one of the URLs, see the setting `webhook_allow`.
    """
    endpoint = endpoint_of(
        url,
        secret_env,
        callbacks,
        reply_s=reply_s,
        reply_bytes_max=reply_bytes_max,
        answer_s=answer_s,
        heartbeat_s=heartbeat_s,
        keeps_slot=keeps_slot,
        cancel_url=cancel_url,
    )
    for each in (url, *([] if cancel_url is None else [cancel_url])):
        target_of(each, allowed_of(app.config))

    def declared(function: Callable[P, R]) -> Callable[Concatenate[Job, P], Coroutine[Any, Any, R]]:
        _refuse_unfit(function)
        worked = _handler(function, WorkedOverHttp(app, endpoint, _result_of(function)))
        if callbacks is not None and not any(isinstance(each, OverdueWaker) for each in app.chores):
            app.add_chore(OverdueWaker(app))
        return worked

    return declared


def _handler(
    function: Callable[..., Any], working: WorkedOverHttp
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The handler that workers run: of the types of the function, with the running job before them."""
    arguments = ArgumentsCodec.of(function, None, payload_bytes_max=ARGS_BYTES_MAX)
    own = inspect.signature(function)

    @functools.wraps(function)
    async def over_http(*args: Any, **kwargs: Any) -> Any:
        job = kwargs.pop(JOB)
        given = own.bind(*args, **kwargs)
        given.apply_defaults()  # the endpoint does not know them
        return await working.work(job, arguments.encode(given.args, given.kwargs))

    first = inspect.Parameter(JOB, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Job)
    kind = inspect.Parameter.POSITIONAL_ONLY
    before = [each for each in own.parameters.values() if each.kind is kind]
    if before:  # the running job is passed by name
        raise _refused(function, f"its parameter {before[0].name!r} is positional-only", "move the '/' away")
    with_job = own.replace(parameters=[first, *own.parameters.values()])
    over_http.__signature__ = with_job  # type: ignore[attr-defined]
    setattr(over_http, WORKING, working)
    return over_http


def _result_of(function: Callable[..., Any]) -> ValueType:
    return ValueType.of(return_annotation(function), "the result")


def _refuse_unfit(function: Callable[..., Any]) -> None:
    refuse_generators(function)
    if is_async(function):
        raise _refused(function, "it is an async def, and is never called", "write def, with no code in it")
    if job_parameter_of(function) is not None:
        raise _refused(
            function, "it takes a Job", "take it away: the endpoint is told the job with the request"
        )


def _refused(function: Callable[..., Any], why: str, fix: str) -> DeclarationError:
    return DeclarationError(f"{name_of(function)} cannot be worked over HTTP", why, fix)
