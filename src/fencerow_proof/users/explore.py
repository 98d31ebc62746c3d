"""`explore`: plays a user's actors in every order of their statements, and checks what must hold."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fencerow.core.errors import FencerowError
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.url import PostgresUrl, parse_url
from fencerow_proof.errors import CannotExplore, NotRepeatable
from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.orders import SEED, Choose, Counted, OrderImpossible, play_all, replay
from fencerow_proof.explorer.playing import play
from fencerow_proof.explorer.violation import Violation
from fencerow_proof.users.meeting import Meeting
from fencerow_proof.users.performer import Performer
from fencerow_proof.users.stage import Stage
from fencerow_proof.users.stage_postgres import PostgresStage
from fencerow_proof.users.stage_sqlite import SqliteStage
from fencerow_proof.users.styles import Desk, style_of
from fencerow_proof.users.told import Exploration, Played

log = logging.getLogger("fencerow.proof")

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
END_S = 1.0  # for the user's code to end once its connections are gone


class HasUrl(Protocol):
    """A database of the plugin's fixtures."""

    @property
    def url(self) -> str: ...


def explore(
    database: str | HasUrl,
    actors: Mapping[str, Callable[..., Any]],
    *,
    tables: str = "",
    setup: str = "",
    invariants: Mapping[str, str] | None = None,
    check: Callable[[Played], object] | None = None,
    expected: tuple[type[Exception], ...] = (),
    connect: Callable[..., Any] | None = None,
    orders_max: int = 1000,
    seed: int = SEED,
    order: str | None = None,
    hold: bool = True,
    patience_s: Seconds = 20.0,
) -> Exploration:
    """Play the actors in every order of their statements on a scratch database, and check each.

    An actor is a generator function that yields SQL (`rows = (yield "SELECT …").rows`), or a function or async
    function of a connection, whose statements are held and then run one at a time. A function is committed
    when it returns and rolled back when it raises. `connect` opens their connections: by default psycopg's,
    or sqlite3's; else it is called with a URL (SQLite: a path and `factory=`) and may be async.

    `tables` is SQL that runs once, `setup` SQL before every order: it must make the same start each time.
    `invariants` are queries by name that must return no row; they run after every transaction and at the end.
    `check` is called after each order and asserts about results and rows; what it returns does not matter.
    `expected` are errors that actors may end with; any other is a violation.

    On PostgreSQL a statement that changes data is also held between its snapshot and its change, unless
    `hold=False`. If there are more than `orders_max` orders, a sample drawn by `seed` is played; the result
    and the log say so. `order` plays one order alone, as a `Violation` names it.

    Raises:
        Violation: something did not hold; it tells the order.
        CannotExplore, NotRepeatable, ActorStuck: the race cannot be played.
    """
    patience_s = in_seconds(patience_s)
    race = Race(
        database, actors, tables, setup, invariants or {}, check, expected, connect, seed, hold, patience_s
    )
    started = time.monotonic()
    try:
        counted = race.play_named(order) if order is not None else race.play_all(orders_max)
    finally:
        race.close()
    complete = order is None and counted.played == counted.total
    told = Exploration(
        race.stage.engine,
        counted.played,
        counted.total,
        complete,
        time.monotonic() - started,
        seed,
        counted.reduced,
    )
    log.log(logging.INFO if complete or order else logging.WARNING, "explored %s", told)
    return told


@dataclass
class Race:
    """One exploration: the stage, and the actors on it."""

    database: str | HasUrl
    actors: Mapping[str, Callable[..., Any]]
    tables: str
    setup: str
    invariants: Mapping[str, str]
    check: Callable[[Played], object] | None
    expected: tuple[type[Exception], ...]
    connect: Callable[..., Any] | None
    seed: int
    hold: bool
    patience_s: float
    stage: Stage = field(init=False)
    desks: dict[str, Desk] = field(init=False)
    known_tables: Mapping[str, str] | None = None
    _began: bool = False

    def __post_init__(self) -> None:
        styles = _checked(self.actors)
        self.stage = _stage(self.database, self.hold, self.patience_s)
        self.desks = {name: self._desk(name, style) for name, style in styles.items()}
        try:
            if self.tables:
                self._run(self.tables, "tables")
        except BaseException:
            self.stage.close()
            raise

    def play_all(self, orders_max: int) -> Counted:
        played: list[list[str]] = []

        def once(choose: Choose) -> list[str]:
            played.append(self._play(choose))
            return played[-1]

        try:
            counted = play_all(once, limit=orders_max, seed=self.seed)
            replay(self._play, played[0])  # it comes out the same, or nothing that was played tells anything
            return counted
        except OrderImpossible as error:
            raise self._not_repeatable(error) from None

    def play_named(self, order: str) -> Counted:
        try:
            replay(self._play, order.split("."))
        except OrderImpossible as error:
            raise self._not_repeatable(error) from None
        return Counted(1, 1)

    def close(self) -> None:
        for desk in self.desks.values():
            desk.close()
        self.stage.close()

    # --- one order -----------------------------------------------------------------------------------

    def _play(self, choose: Choose) -> list[str]:
        self._run(self.setup, "setup")
        if not self._began:
            self.known_tables, self._began = self.stage.tables(), True
        self.stage.begin()
        one = Play(self, choose)
        try:
            one.run()
        except BaseException:
            one.abandon()
            raise
        return one.order

    def _run(self, script: str, what: str) -> None:
        try:
            self.stage.run(script)
        except FencerowError:
            raise
        except Exception as error:
            raise CannotExplore(
                f"the SQL of `{what}` was refused: {error}",
                "`tables` runs once, `setup` before every order",
                "let `setup` first delete what the last order left",
            ) from error

    def _desk(self, name: str, style: Any) -> Desk:
        return Desk(style, lambda: self.stage.connect(name, style, self.connect), keep=self.connect is None)

    def _not_repeatable(self, error: OrderImpossible) -> NotRepeatable:
        return NotRepeatable(
            f"the same order had another result: {error}",
            "an actor may depend only on the database",
            "remove random numbers, times and state in memory; let `setup` make the same start each time",
        )


class Play:
    """One order of one race."""

    def __init__(self, race: Race, choose: Choose) -> None:
        self.order: list[str] = []
        self.lines: list[str] = []
        self.touched: Footprint | None = None
        self._meeting = Meeting(race.known_tables, watched=bool(race.invariants))
        self._late: list[str] = []
        self._race = race
        self._choose = choose
        hall = threading.Condition()
        self._performers = [Performer(name, hall, self._tell) for name in race.actors]

    def run(self) -> None:
        """Play it and check it.

        Raises:
            Violation: something did not hold.
        """
        for number, performer in enumerate(self._performers, 1):
            self._race.stage.seat(performer)
            performer.start(self._work(performer))
            self._settle(self._performers[:number])
        play(self, self._choose, self.order)
        self._look()
        self._check()

    # --- for the loop that plays it --------------------------------------------------------------------

    state = None

    @property
    def is_over(self) -> bool:
        return all(each.done for each in self._performers)

    def options(self) -> list[str]:
        return [each.name for each in self._performers if each.may_go]

    def forced(self, options: Sequence[str]) -> None:  # noqa: ARG002 (each step is a choice)
        return None

    def step(self, name: str) -> None:
        """Let one go on, up to where nothing moves any more."""
        (stepped,) = (each for each in self._performers if each.name == name)
        self._race.stage.let_go(stepped)
        self._rest(stepped)

    def unblock(self) -> None:
        """The actors wait for each other: one of them is told what the database would tell it in the end."""
        if not self._race.stage.unblock(self._performers):
            self._violated("the actors wait for each other, and the database does not end it")
        self._rest(self._performers[0])

    def _rest(self, stepped: Performer) -> None:
        self._settle(self._performers)
        self.touched = self._meeting.touched(stepped, self._performers)
        if any(each.ends for each in self._performers):
            self._look()

    # --- before and after ------------------------------------------------------------------------------

    def abandon(self) -> None:
        """End the actors where they are, and take back what they did not commit."""
        for each in self._performers:
            each.abandon()
        self._race.stage.cut()
        for each in self._performers:
            if each.join(END_S):
                self._race.desks[each.name].drop()

    def _work(self, performer: Performer) -> Callable[[], Any]:
        desk, actor = self._race.desks[performer.name], self._race.actors[performer.name]

        def stepping(on: bool) -> None:
            with performer.hall:
                performer.stepping = on

        return lambda: desk.work(actor, stepping)

    def _look(self) -> None:
        for each in self._performers:
            each.ends = 0
        found = self._race.stage.look(self._race.invariants)
        for name, rows in (found or {}).items():
            if rows:
                self._violated(f"invariant {name!r} does not hold: {', '.join(map(str, rows))}")

    def _check(self) -> None:
        race = self._race
        errors: dict[str, Exception] = {}
        for each in self._performers:
            if isinstance(each.error, race.expected):
                errors[each.name] = each.error
            elif isinstance(each.error, CannotExplore):
                raise each.error
            elif each.error is not None:
                self._violated(f"actor {each.name!r} ended with {_described(each.error)}", each.error)
        if race.check is None:
            return
        results = {each.name: each.result for each in self._performers if each.error is None}
        try:
            race.check(Played(".".join(self.order), results, errors, race.stage.rows))
        except AssertionError as error:
            ends = ", ".join(f"{name} returned {result!r}" for name, result in results.items())
            what = str(error).strip() or "the check does not hold"
            self._violated(f"{what}\n  ({ends})" if ends else what, error)

    def _violated(self, what: str, error: BaseException | None = None) -> None:
        order = ".".join(self.order)
        again = f"explore(..., order={order!r})  (found with seed={self._race.seed})"
        raise Violation(what, order, self.lines, again) from error

    def _tell(self, actor: str, line: str, freed: bool = False) -> None:
        """What another's step set free is told after that step, whichever answer came first."""
        told = f"{actor}: {line}"
        if freed or any(late.startswith(f"{actor}: ") for late in self._late):
            self._late.append(told)
        else:
            self.lines.append(told)

    def _settle(self, performers: Sequence[Performer]) -> None:
        self._race.stage.settle(performers, self._tell)
        self.lines += self._late
        self._late.clear()


def _checked(actors: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    if not actors:
        raise CannotExplore("no actors were given", "a race needs actors", "pass actors={'a': ..., 'b': ...}")
    for name in actors:
        if not NAME.fullmatch(name):
            raise CannotExplore(
                f"{name!r} cannot name an actor",
                "names are letters, digits, - and _, at most 40: orders are written with dots between them",
                "give it another name",
            )
    return {name: style_of(name, actor) for name, actor in actors.items()}


def _stage(database: str | HasUrl, hold: bool, patience_s: float) -> Stage:
    url = parse_url(database if isinstance(database, str) else database.url)
    if isinstance(url, PostgresUrl):
        return PostgresStage(url.conninfo, hold=hold, patience_s=patience_s)
    return SqliteStage(url.path, patience_s=patience_s)


def _described(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
