"""Receipts, as the core is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.app.from_arguments import computed
from fencerow.core.config import CoreConfig
from fencerow.core.errors import InvalidInput
from fencerow.core.finding import Finding, ok
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import NewJob
from fencerow.core.offered import Options
from fencerow.core.telemetry import Telemetry
from fencerow.core.wing import Check, Purge, Wing
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation

NAME = "receipts"


class ReceiptOptions(Options):
    """`receipt=`: a wish, or a function of the arguments that gives one."""

    def said(self, given: Mapping[str, Any]) -> Any:
        wish = given.get("receipt")
        if wish is None or wish is False or isinstance(wish, str) or callable(wish):
            return wish
        raise InvalidInput(f"receipt is of type {type(wish).__name__}", "a text is expected", "say please")

    def functions(self, said: Any) -> Iterator[tuple[str, object]]:
        yield "receipt", said

    def refuse(self, said: Any, limits: Defaults) -> None:
        if limits.ephemeral:
            raise InvalidInput(
                "an ephemeral job was given receipt=", "nothing of it is left", "leave out one"
            )

    def term(self, said: Any, args: bytes, handler: Handler) -> Any:
        return computed(said, "receipt", args, handler.arguments) if callable(said) else said


def _stored(jobs: Sequence[NewJob], *, again: bool) -> Steps[None]:
    wishes = [{"id": job.id, "wish": (job.terms or {})[NAME]} for job in jobs]
    if any(each["wish"] == "impossible" for each in wishes):
        raise LookupError("nobody can have this receipt")
    yield from execute("wish_for_receipts", wishes=msgspec.json.encode(wishes).decode())


@operation(alone=True, repeatable=True, writes="")
def counted() -> Steps[int]:
    """How many receipts are signed."""
    return as_int((yield from execute("count_receipts"))[0][0])


@operation(alone=True, repeatable=True)
def purge(*, limit: int) -> Steps[int]:
    """Forget so many that are signed."""
    return len((yield from execute("purge_receipts", limit=limit)))


def _examine(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    yield ok("receipts", f"{engine.run(counted())} signed")


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    async def round_of() -> object:
        return await engine.arun(purge(limit=100))

    return (round_of,)


WING = Wing(
    NAME,
    queries=("tests.house.receipts",),
    options=("receipt",),
    offers=ReceiptOptions,
    stored=_stored,
    purges=_purges,
    checks=lambda: (Check("receipts", _examine),),
)
