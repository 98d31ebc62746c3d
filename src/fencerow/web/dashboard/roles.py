"""Who looks at the dashboard, and what they may do there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum

from starlette.requests import Request

from fencerow.web.tokens.scope import Grant, Scope


class Role(IntEnum):
    """What a visitor may do; each includes those before it."""

    NONE = 0
    READ = 1
    ACT = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """As it is written on a page and in a host's `authorize`."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, and in which role. What they change is told under `name`."""

    name: str
    role: Role


NOBODY = Visitor("", Role.NONE)
# A host says who asks: a visitor, or nobody. The request has the host's own session.
Authorize = Callable[[Request], Awaitable[Visitor]]


def role_of(grant: Grant) -> Role:
    """What the bearer of an API token may do here.

    One that is good for some queues only may nothing: the pages show all queues.
    """
    if not grant.reaches_all:
        return Role.NONE
    for scope, role in ((Scope.ADMIN, Role.ADMIN), (Scope.OPERATE, Role.ACT), (Scope.READ, Role.READ)):
        if grant.may(scope):
            return role
    return Role.NONE
