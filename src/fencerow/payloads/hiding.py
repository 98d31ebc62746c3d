"""Data of a declared job for people's eyes: without what its types call secret."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fencerow.core.app.declare import DeclaredBase
from fencerow.core.model.handler import Handler
from fencerow.payloads.secret import Secrets, hide, secrets_in

Job = DeclaredBase[..., ..., Any, Any]
KEPT_MAX = 1_000


def hidden_arguments(job: Job | None, data: Any, hidden: Callable[[Any], Any]) -> Any:
    """Arguments of the job with `hidden(value)` for each secret; as they are where nobody declares the job here."""
    return data if job is None else hide(data, _secrets(_Declared(job.handler))[0], hidden)


def hidden_result(job: Job | None, data: Any, hidden: Callable[[Any], Any]) -> Any:
    """The same for a result of the job."""
    return data if job is None else hide(data, _secrets(_Declared(job.handler))[1], hidden)


class _Declared:
    """A handler that is looked up by what it is, not by what it holds."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Declared) and self.handler is other.handler

    def __hash__(self) -> int:
        return id(self.handler)


@lru_cache(maxsize=KEPT_MAX)
def _secrets(declared: _Declared) -> tuple[Secrets, Secrets]:
    handler = declared.handler
    parameters = handler.arguments.parameters.values()
    arguments = Secrets(fields={each.name: secrets_in(each.annotation) for each in parameters})
    return arguments, secrets_in(handler.result.type.decoder.type)
