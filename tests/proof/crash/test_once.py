"""Whatever dies at whatever point of a key, a window or a replacement: asked again, it comes to the same end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fencerow.db.run import Operation, Steps
from fencerow.guards.once import reserving, window
from fencerow.guards.once.reserving import Turn, end_once, purge_once, release_once, renew_once, reserve_once
from fencerow.guards.once.window import admit, purge_windows, withdraw_admitted
from fencerow.guards.replace import sources
from fencerow.guards.replace.deciding import Found
from fencerow.guards.replace.sources import (
    Stamp,
    forget_source,
    purge_sources,
    release_source,
    renew_source,
    reserve_source,
    settle_source,
)
from fencerow.guards.replace.user_table import KnownTable
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case, Unrecovered, crash_everywhere
from tests.proof.crash.operations import is_operation
from tests.proof.race import users
from tests.proof.race.test_once import WINDOW_S, key, token
from tests.proof.race.test_replace import OLD, reserve, wanted, write, written
from tests.proof.race.users import Users

DAY_S = 86400.0


@pytest.fixture(scope="session", autouse=True)
def _tables(arenas: Mapping[str, Any]) -> Iterator[None]:
    yield from users.made(arenas)


def again(operation: Operation[Any], *answers: Any) -> Callable[[], Script]:
    """Whoever did not see the answer asks again, and gets one of these."""

    def script() -> Script:
        assert operation.repeatable
        answer = yield operation
        assert answer in answers, f"{operation.name} again: {answer}"

    return script


def swept(operation: Operation[int], then: Operation[Any], *answers: Any) -> Callable[[], Script]:
    """A sweep is not repeated but comes again."""

    def script() -> Script:
        yield operation
        assert (yield then) in answers

    return script


def reserved() -> Script:
    yield reserve_once(key("first"), token(1))


def ended_long_ago() -> Script:
    yield from reserved()
    yield end_once(key("first"), token(1), '"paid"')
    yield later(2 * DAY_S)


def admitted() -> Script:
    yield admit("posts", "k", "job-1", token(1), window_s=WINDOW_S)


def window_over() -> Script:
    yield from admitted()
    yield later(WINDOW_S + 1)


FIRST = key("first")
MINE = reserving.Reserved(Turn.MINE, "first")
NEW = window.Admitted(True, "job-1", "k", token(1))
ENDED = end_once(FIRST, token(1), '"paid"')


def cases(mine: Users) -> list[Case]:
    contents = (wanted(0, None, "h0"), wanted(1, None, "h1"))
    again_old = wanted(2, None, "h0")
    replaced = write(mine, contents[1], 2, "a 1", "a 2")

    def once_cleared() -> Script:
        yield mine.clear()

    def read_after(operation: Operation[Any], *texts: list[str]) -> Callable[[], Script]:
        def script() -> Script:
            assert (yield mine.read()) in texts, "half of a replacement"
            stamp = yield operation
            assert stamp in (Stamp.FRESH, Stamp.REPEATED)
            assert (yield mine.read()) == texts[-1]

        return script

    def emptied() -> Script:
        yield from written(mine, contents[0])()
        answer, _ = yield reserve(mine, contents[1])
        yield write(mine, contents[1], answer.number)
        yield later(2 * DAY_S)

    def needed() -> Script:
        answer, _ = yield reserving_source
        assert answer.found is Found.NEEDED

    def unchanged() -> Script:
        answer, _ = yield confirming
        assert answer.found is Found.UNCHANGED
        assert (yield write(mine, contents[1], 2, "late")) is Stamp.REFUSED
        assert (yield mine.read()) == OLD

    def known() -> Steps[KnownTable]:
        yield from ()
        return spelling

    def respelled() -> Script:
        settled, _ = yield settle_source(contents[1], known)
        assert not (yield forget_source(contents[1].target, settled.source)), "it is under the one name alone"
        assert (yield forget_source(settled.target, settled.source))

    spelling = KnownTable("the_one_name", frozenset(), None)
    reserving_source = reserve_source(contents[1], None, lambda: mine.table.columns(mine.dialect))
    confirming = reserve(mine, again_old)
    return [
        Case(
            "reserve_once",
            once_cleared,
            reserve_once(FIRST, token(1)),
            again(reserve_once(FIRST, token(1)), MINE),
        ),
        Case("end_once", reserved, ENDED, again(ENDED, True)),
        Case("renew_once", reserved, renew_once(FIRST, token(1)), again(renew_once(FIRST, token(1)), True)),
        Case(
            "release_once",
            reserved,
            release_once("s", "k", token(1)),
            again(release_once("s", "k", token(1)), True, False),
        ),
        Case(
            "purge_once",
            ended_long_ago,
            purge_once(limit=5),
            swept(purge_once(limit=5), purge_once(limit=5), 0),
        ),
        Case(
            "admit",
            once_cleared,
            admit("posts", "k", "job-1", token(1), window_s=WINDOW_S),
            again(admit("posts", "k", "job-1", token(1), window_s=WINDOW_S), NEW),
        ),
        Case(
            "withdraw_admitted",
            admitted,
            withdraw_admitted("posts", "k", token(1)),
            again(withdraw_admitted("posts", "k", token(1)), True, False),
        ),
        Case(
            "purge_windows",
            window_over,
            purge_windows(limit=5),
            swept(purge_windows(limit=5), purge_windows(limit=5), 0),
        ),
        Case(
            "settle_source",
            written(mine, *contents),
            settle_source(contents[1], known),
            respelled,
        ),
        Case("reserve_source", written(mine, contents[0]), reserving_source, needed),
        Case("reserve_source, the same content again", written(mine, *contents), confirming, unchanged),
        Case("replace_rows", written(mine, *contents), replaced, read_after(replaced, OLD, ["a 1", "a 2"])),
        Case(
            "renew_source",
            written(mine, *contents),
            renew_source(contents[1]),
            again(renew_source(contents[1]), True),
        ),
        Case(
            "release_source",
            written(mine, *contents),
            release_source(contents[1]),
            again(release_source(contents[1]), True, False),
        ),
        Case(
            "forget_source",
            written(mine, *contents),
            forget_source("chunks", "faq"),
            again(forget_source("chunks", "faq"), True, False),
        ),
        Case(
            "purge_sources",
            emptied,
            purge_sources(age_s=DAY_S, limit=5),
            swept(purge_sources(age_s=DAY_S, limit=5), purge_sources(age_s=DAY_S, limit=5), 0),
        ),
    ]


NAMES = [case.name for case in cases(Users("sqlite"))]


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("name", NAMES)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    (case,) = [each for each in cases(Users(mode)) if each.name == name]

    number, seconds = crash_everywhere(arenas[mode], case)

    facts = {"scenario": f"crash in {name}", "mode": mode, "played": number, "total": number}
    record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_every_operation_is_among_them() -> None:
    operations = {
        name
        for module in (reserving, sources, window)
        for name, verb in vars(module).items()
        if is_operation(verb) and verb.__module__ == module.__name__
    }

    # Its statement is the first of replace_rows; the rest of its transaction is the user's.
    assert operations - {case.operation.name for case in cases(Users("sqlite"))} == {"stamp_source"}


def test_a_replacement_in_two_transactions_is_caught(arenas: Mapping[str, Any]) -> None:
    mine = Users("plain")
    (case,) = [each for each in cases(mine) if each.name == "replace_rows"]
    with pytest.raises(Unrecovered):
        crash_everywhere(
            arenas["plain"], replace(case, operation=msgspec.structs.replace(case.operation, alone=True))
        )
