"""A token as it is stored, and who it lets pass."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from fencerow.core.model.job import At, instant, moment
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import elements, salvaged
from fencerow.web.tokens.scope import Grant, Scope


class TokenState(StrEnum):
    """Whether a token lets its bearer pass, and if not, why."""

    LIVE = "live"
    REVOKED = "revoked"
    EXPIRED = "expired"
    UNREADABLE = "unreadable"


class TokenRecord(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of an API token: never the token. Instants are microseconds since 1970 by the database's clock.

    `queues`: those that it reaches; None: all. `expires_at_us`: None: never. `last_used_at_us` is true to about a
    minute. `now_us`: when this was read, by which `state` is judged. `damaged` names what cannot be read, because
    something other than Fencerow wrote it: such a token lets nobody pass.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...] | None
    created_at_us: int
    created_by: str | None
    expires_at_us: int | None
    revoked_at_us: int | None
    revoked_by: str | None
    last_used_at_us: int | None
    now_us: int
    damaged: tuple[str, ...] = ()

    now = At("now_us")

    @classmethod
    def of_document(cls, text: str) -> Self:
        """A token in a JSON array. What cannot be read reads as nothing: no scope, no queue."""
        try:
            return msgspec.json.decode(text, type=cls)
        except UNREADABLE:
            types = {each.name: each.type for each in msgspec.structs.fields(cls)}
            values, damaged = salvaged(types, dict(zip(types, elements(text), strict=False)))
            for name in {"scopes", "queues"}.intersection(damaged):
                values[name] = ()
            return cls(**values, damaged=tuple(damaged))

    @property
    def state(self) -> TokenState:
        """Whether it let its bearer pass when it was read."""
        if self.damaged:
            return TokenState.UNREADABLE
        if self.revoked_at_us is not None:
            return TokenState.REVOKED
        is_over = self.expires_at_us is not None and self.expires_at_us <= self.now_us
        return TokenState.EXPIRED if is_over else TokenState.LIVE

    @property
    def grant(self) -> Grant:
        """What it lets its bearer do while it is live."""
        queues = None if self.queues is None else frozenset(self.queues)
        return Grant(self.id, self.name, frozenset(self.scopes), queues)

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        return moment(self.created_at_us)

    @property
    def expires_at(self) -> datetime | None:
        """When it lets nobody pass any more; None: never."""
        return instant(self.expires_at_us)

    @property
    def revoked_at(self) -> datetime | None:
        """When it was revoked; None: it was not."""
        return instant(self.revoked_at_us)

    @property
    def last_used_at(self) -> datetime | None:
        """When somebody passed with it last, true to about a minute; None: nobody did."""
        return instant(self.last_used_at_us)
