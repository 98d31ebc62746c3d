"""A chore: what a worker does besides its jobs, such as sweeping a user's table or delivering events."""

from __future__ import annotations

from typing import Protocol


class Chore(Protocol):
    """Something to be done again and again, in every worker at once and with no leader.

    Trouble of the database is waited out; any other error ends the worker with its reason, so a chore
    that calls the user's code deals with that code's errors itself.
    """

    @property
    def name(self) -> str:
        """What logs call it."""
        ...

    async def tick(self) -> float:
        """Do what there is; returns the seconds after which it wants to be asked again."""
        ...
