"""Plays the actors of a scenario in every order, one statement at a time, and checks what must hold after each.

An operation is a generator of statements; this is one more runner of it. What is explored is what runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from fencerow.db.run import Operation
from fencerow_proof.arena.actor import Actor, Script
from fencerow_proof.explorer.orders import SEED, Choose, play_all, replay
from fencerow_proof.explorer.violation import Violation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens before, who races, and what must hold after every order.

    `settings` are PostgreSQL settings of the actors' connections, for instance to force a plan.
    """

    name: str
    setup: Callable[[], Script]
    actors: Sequence[Actor]
    check: Callable[[Story], None]
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What was explored. `reduced`: all orders, but one of those that come to the same; these are counted."""

    scenario: str
    mode: str
    played: int
    total: int
    seconds: float
    reduced: bool = False


class Arena(Protocol):
    """A database in which a scenario can be played again and again."""

    mode: str

    def fresh(self, scenario: Scenario) -> None:
        """Empty tables, the clock as it is, nobody connected but idle actors."""

    def run(self, operation: Operation[T]) -> T:
        """Run an operation outside the race."""
        ...

    def play(self, scenario: Scenario, context: Any, choose: Choose, story: Story) -> None:
        """Play the actors to their end."""

    def invariants(self) -> list[str]:
        """What must always hold and does not."""
        ...


@dataclass(slots=True)
class Story:
    """One order as it was played: what a check looks at. `waited` names those who met another's lock."""

    arena: Arena
    context: Any = None
    results: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    waited: set[str] = field(default_factory=set)

    def run(self, operation: Operation[T]) -> T:
        """Look at the database by an operation."""
        return self.arena.run(operation)

    def tell(self, actor: str, line: str) -> None:
        self.lines.append(f"{actor}: {line}")


def explore(arena: Arena, scenario: Scenario, *, limit: int = 5000, seed: int = SEED) -> Report:
    """Play every order of the scenario (a seeded sample beyond `limit`).

    Raises:
        Violation: after some order something did not hold.
    """
    started = time.monotonic()
    counted = play_all(lambda choose: play(arena, scenario, choose).order, limit=limit, seed=seed)
    seconds = time.monotonic() - started
    return Report(scenario.name, arena.mode, counted.played, counted.total, seconds, counted.reduced)


def play_again(arena: Arena, scenario: Scenario, order: str) -> Story:
    """Play one order alone, as a `Violation` named it."""
    told: list[Story] = []

    def once(choose: Choose) -> list[str]:
        told.append(play(arena, scenario, choose))
        return told[-1].order

    replay(once, order.split("."))
    return told[-1]


def play(arena: Arena, scenario: Scenario, choose: Choose) -> Story:
    """Play one order and check it."""
    arena.fresh(scenario)
    story = Story(arena)
    try:
        story.context = perform(arena, scenario.setup())
        arena.play(scenario, story.context, choose, story)
        wrong = arena.invariants()
        assert not wrong, "; ".join(wrong)
        scenario.check(story)
    except AssertionError as error:
        order = ".".join(story.order)
        what = f"{scenario.name}: {type(error).__name__}: {error}"
        raise Violation(what, order, story.lines, f"play_again(…, {order!r})") from error
    return story


def perform(arena: Arena, script: Script) -> Any:
    """Run a script outside the race, operation by operation."""
    try:
        operation = next(script)
        while True:
            operation = script.send(arena.run(operation))
    except StopIteration as stop:
        return stop.value
