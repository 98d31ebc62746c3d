"""Races of replacements: two that write one source and a reader, reservations, a content that came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fencerow.db.run import Operation, Steps, execute
from fencerow.guards.replace import sources
from fencerow.guards.replace.deciding import Found, Reservation, WantedContent
from fencerow.guards.replace.sources import Stamp, replace_rows, reserve_source
from fencerow_proof.arena.actor import Actor, Script, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race import users
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import uid
from tests.proof.race.users import Users

STALE_S = 60.0
OLD = ["old 1", "old 2"]


@pytest.fixture(scope="session", autouse=True)
def _tables(arenas: Mapping[str, Any]) -> Iterator[None]:
    yield from users.made(arenas)


@pytest.fixture
def mine(race: Race) -> Users:
    return Users(race.mode)


def wanted(
    who: int,
    version: int | None = None,
    content: str | None = None,
    owner: str | None = None,
    attempt: int | None = None,
) -> WantedContent:
    return WantedContent(
        "chunks", "faq", version, content, owner or f"call:{who}", attempt, uid(300 + who), STALE_S
    )


def reserve(mine: Users, content: WantedContent) -> Operation[tuple[Reservation, frozenset[str]]]:
    return reserve_source(content, None, mine.columns)


def write(mine: Users, content: WantedContent, number: int, *texts: str) -> Operation[Stamp]:
    return replace_rows(content, number, None, row_count=len(texts), write=lambda: mine.replaced(*texts))


def replacing(mine: Users, name: str, content: WantedContent, *texts: str) -> Actor:
    """Reserve, compute, write."""

    def script(_: Any) -> Script:
        answer, _columns = yield reserve(mine, content)
        if answer.found is not Found.NEEDED:
            return answer.found
        return (yield write(mine, content, answer.number, *texts))

    return Actor(name, script)


def writing(name: str, *operations: Operation[Any]) -> Actor:
    """Write what was reserved before, in one transaction or in several."""

    def script(_: Any) -> Script:
        last = None
        for each in operations:
            last = yield each
        return last

    return Actor(name, script)


def reading(mine: Users) -> Actor:
    def script(_: Any) -> Script:
        return [(yield mine.read())]

    return Actor("reader", script)


def written(mine: Users, first: WantedContent, *later_ones: WantedContent) -> Any:
    """The source holds OLD, and the later ones have been reserved in this order."""

    def setup() -> Script:
        yield mine.clear()
        answer, _ = yield reserve(mine, first)
        yield write(mine, first, answer.number, *OLD)
        for each in later_ones:
            answer, _ = yield reserve(mine, each)
            assert answer.found is Found.NEEDED
        return None

    return setup


SETS = {"first": ["a 1", "a 2"], "second": ["b 1", "b 2", "b 3"]}


def whole_sets(story: Story) -> None:
    for seen in story.results["reader"]:
        assert seen in (OLD, *SETS.values()), f"a reader saw {seen}"


def the_newer_one_stays(mine: Users) -> Any:
    def check(story: Story) -> None:
        whole_sets(story)
        assert story.results["second"] is Stamp.FRESH
        assert story.run(mine.read()) == SETS["second"], "the older one stands there"

    return check


BY_VERSION = (wanted(0, 1), wanted(1, 2), wanted(2, 3))
BY_NUMBER = (wanted(0, None, "h0"), wanted(1, None, "h1"), wanted(2, None, "h2"))


def two_writers(
    mine: Users, contents: tuple[WantedContent, WantedContent, WantedContent], name: str
) -> Scenario:
    _, first, second = contents
    return Scenario(
        f"replace × replace × reader, by {name}",
        written(mine, *contents),
        [
            writing("first", write(mine, first, 2, *SETS["first"])),
            writing("second", write(mine, second, 3, *SETS["second"])),
            reading(mine),
        ],
        the_newer_one_stays(mine),
    )


@in_modes("plain", "sqlite")
def test_readers_see_one_set_and_the_newer_one_stays(race: Race, mine: Users) -> None:
    race(two_writers(mine, BY_VERSION, "version"))


@in_modes("held")
def test_the_newer_one_stays_when_statements_are_held(race: Race, mine: Users) -> None:
    """Without the reader, which no held statement can show more: it reads what is committed."""
    scenario = two_writers(mine, BY_VERSION, "version")

    def check(story: Story) -> None:
        assert story.results["second"] is Stamp.FRESH
        assert story.run(mine.read()) == SETS["second"]

    race(Scenario("replace × replace, by version", scenario.setup, scenario.actors[:2], check))


@in_modes("plain", "sqlite")
def test_the_later_reservation_stays_where_there_is_no_version(race: Race, mine: Users) -> None:
    race(two_writers(mine, BY_NUMBER, "number"))


@pytest.mark.parametrize(
    ("contents", "guard"),
    [
        (BY_VERSION, "known.version < EXCLUDED.version"),
        (BY_NUMBER, "known.written_number < EXCLUDED.written_number"),
    ],
)
def test_without_the_check_of_the_order_whoever_is_last_wins(
    race: Race, mine: Users, contents: tuple[WantedContent, WantedContent, WantedContent], guard: str
) -> None:
    cut = Cut("stamp_source", (guard, "true"), (guard.replace("EXCLUDED", "excluded"), "true"))
    race.turns_red(two_writers(mine, contents, "the last"), cut)


@in_modes("plain", "held")
def test_without_the_lock_the_sets_are_mixed(race: Race, mine: Users) -> None:
    """The stamp, and with it the source's lock, comes after the rows: the second deletes what it could see."""

    def unlocked(content: WantedContent, number: int, *texts: str) -> Operation[Any]:
        def steps() -> Steps[Stamp]:
            yield from mine.replaced(*texts)
            return (yield from sources._stamped(content, number, None, len(texts)))

        return transaction("unlocked", steps)

    _, first, second = BY_VERSION
    scenario = two_writers(mine, BY_VERSION, "version, without the lock")
    race.turns_red(
        Scenario(
            scenario.name,
            scenario.setup,
            [
                writing("first", unlocked(first, 2, *SETS["first"])),
                writing("second", unlocked(second, 3, *SETS["second"])),
            ],
            lambda story: the_set_is_whole(mine, story),
        ),
        # Nothing is cut but the order; a cut that changes no answer.
        Cut("stamp_source", ("RETURNING number", "RETURNING  number")),
    )


def the_set_is_whole(mine: Users, story: Story) -> None:
    left = story.run(mine.read())
    assert left in SETS.values(), f"{left} is left"


@in_modes("plain", "sqlite")
def test_in_two_transactions_a_reader_sees_nothing(race: Race, mine: Users) -> None:
    _, first, _second = BY_VERSION

    def removed() -> Steps[Any]:
        yield from execute("stamp_source", sources._content(first), number=2, row_count=2)
        yield from mine.removed()

    scenario = Scenario(
        "replace in two transactions × reader",
        written(mine, *BY_VERSION),
        [
            writing(
                "first",
                transaction("remove", removed),
                transaction("insert", lambda: mine.inserted(*SETS["first"])),
            ),
            reading(mine),
        ],
        whole_sets,
    )
    race.turns_red(
        scenario,
        Cut(
            "stamp_source",
            ("RETURNING number", "RETURNING  number"),
            ("RETURNING number", "RETURNING  number"),
        ),
    )


# --- reservations --------------------------------------------------------------------------------------------


def one_computes(mine: Users, at_most: int = 1) -> Any:
    def check(story: Story) -> None:
        stamps = [result for result in story.results.values() if isinstance(result, Stamp)]
        assert 1 <= len(stamps) <= at_most, f"{len(stamps)} computed the same content"
        assert story.run(mine.read()) in SETS.values()

    return check


def same_content(mine: Users, version: int | None) -> Scenario:
    return Scenario(
        f"reserve × reserve of one content, version {version}",
        written(mine, wanted(0, None if version is None else 1, "h0")),
        [
            replacing(mine, "first", wanted(1, version, "h1"), *SETS["first"]),
            replacing(mine, "second", wanted(2, version, "h1"), *SETS["second"]),
        ],
        one_computes(mine),
    )


@in_modes("plain", "sqlite")
def test_one_content_is_computed_once(race: Race, mine: Users) -> None:
    race(same_content(mine, None))


@in_modes("held")
def test_one_of_two_reserves(race: Race, mine: Users) -> None:
    def reserving(name: str, who: int) -> Actor:
        def script(_: Any) -> Script:
            answer, _columns = yield reserve(mine, wanted(who, None, "h1"))
            return answer.found

        return Actor(name, script)

    def check(story: Story) -> None:
        assert sorted(found.name for found in story.results.values()) == ["BUSY", "NEEDED"]

    race(
        Scenario(
            "reserve × reserve",
            written(mine, wanted(0, None, "h0")),
            [reserving("first", 1), reserving("second", 2)],
            check,
        )
    )


@in_modes("plain", "sqlite")
def test_one_version_is_computed_once(race: Race, mine: Users) -> None:
    race(same_content(mine, 2))


@in_modes("plain", "held")
def test_without_the_reservation_both_compute(race: Race, mine: Users) -> None:
    race.turns_red(
        same_content(mine, None),
        Cut("reserve_source", ("known.token IS NULL\n", "true\n")),
    )


def dying(mine: Users) -> Scenario:
    """The first died while it computed; its own rerun goes on at once, another when the lease is over."""

    def check(story: Story) -> None:
        results = (story.results["again"], story.results["other"])
        assert Stamp.FRESH in results, f"nobody wrote: {results}"
        assert story.run(mine.read()) in SETS.values()

    def time(_: Any) -> Script:
        yield later(STALE_S + 1)

    return Scenario(
        "a reservation whose owner died × its rerun × another × time",
        written(mine, wanted(0, None, "h0"), wanted(1, None, "h1", "job:1", 1)),
        [
            replacing(mine, "again", wanted(2, None, "h1", "job:1", 2), *SETS["first"]),
            replacing(mine, "other", wanted(3, None, "h1", "job:3"), *SETS["second"]),
            Actor("time", time),
        ],
        check,
    )


@in_modes("plain", "sqlite")
def test_who_died_frees_the_source(race: Race, mine: Users) -> None:
    race(dying(mine))


@in_modes("plain", "sqlite")
def test_without_the_owner_check_its_own_rerun_waits_for_itself(race: Race, mine: Users) -> None:
    race.turns_red(
        dying(mine),
        Cut(
            "reserve_source",
            ("OR known.owner = EXCLUDED.owner AND known.attempt < EXCLUDED.attempt\n", "\n"),
            ("OR known.owner = excluded.owner AND known.attempt < excluded.attempt\n", "\n"),
        ),
    )


def came_back(mine: Users, versions: tuple[int | None, int | None, int | None]) -> Scenario:
    """From h0 to h1 and back to h0: the one in between was reserved first and must not be what stays."""
    first, between, back = versions

    def check(story: Story) -> None:
        assert story.results["back"] in (Found.UNCHANGED, Stamp.FRESH)
        expected = OLD if story.results["back"] is Found.UNCHANGED else SETS["second"]
        assert story.run(mine.read()) == expected, "what came in between stands there"

    return Scenario(
        f"replace × the content before it again, versions {versions}",
        written(mine, wanted(0, first, "h0"), wanted(1, between, "h1")),
        [
            writing("between", write(mine, wanted(1, between, "h1"), 2, *SETS["first"])),
            replacing(mine, "back", wanted(2, back, "h0"), *SETS["second"]),
        ],
        check,
    )


def test_a_content_that_came_back_is_what_stays(race: Race, mine: Users) -> None:
    race(came_back(mine, (None, None, None)))


@in_modes("plain", "sqlite")
def test_a_content_that_came_back_under_a_newer_version_is_what_stays(race: Race, mine: Users) -> None:
    race(came_back(mine, (1, 2, 3)))


@in_modes("plain", "sqlite")
def test_without_the_confirmation_what_came_in_between_stays(race: Race, mine: Users) -> None:
    set_number = "written_number = number + 1,"
    race.turns_red(
        came_back(mine, (None, None, None)),
        Cut(
            "confirm_source",
            (set_number, "written_number = written_number,"),
            (set_number, "written_number = written_number,"),
        ),
    )
