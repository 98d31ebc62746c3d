"""Races for an API token: it is revoked once, and lets nobody pass once that was said."""

from __future__ import annotations

from fencerow.web.tokens.operations import Revoked, WantedToken, create, note_use, revoke, tokens_of_hashes
from fencerow.web.tokens.record import TokenState
from fencerow.web.tokens.scope import Scope
from fencerow_proof.arena.actor import Actor, Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.people import uid

TOKEN, HASH = uid(900), "0" * 64
UNGUARDED = Cut("revoke_token", ("token.revoked_at IS NULL", "true"), ("token.revoked_at IS NULL", "true"))


def stored() -> Script:
    yield create(WantedToken(TOKEN, "deploy", HASH, (Scope.READ,), None, 3600.0), actor=None)


def revoking(name: str) -> Actor:
    return doing(name, revoke(TOKEN, actor=name))


def one_revokes(story: Story) -> None:
    answers: list[Revoked] = [story.results[name] for name in ("ada", "bob")]
    token = story.run(tokens_of_hashes([HASH]))[HASH]

    assert [each.done for each in answers].count(True) == 1, (
        "both were told that it was theirs, or nobody was"
    )
    winner = "ada" if answers[0].done else "bob"
    told = {each.token.revoked_by for each in answers if each.token is not None}
    assert told == {winner} == {token.revoked_by}, "the loser was told of somebody else"


both = Scenario("revoke token × revoke token", stored, [revoking("ada"), revoking("bob")], one_revokes)


def test_of_two_who_revoke_one_wins_and_the_other_is_told_of_him(race: Race) -> None:
    race(both)


def test_two_revoke_a_token_without_a_guard(race: Race) -> None:
    race.turns_red(both, UNGUARDED)


def using(_: object) -> Script:
    """Two uses, with a note between them, as a gateway makes it."""
    first = yield tokens_of_hashes([HASH])
    yield note_use([TOKEN], fresh_s=60.0)
    second = yield tokens_of_hashes([HASH])
    return first[HASH].state, second[HASH].state


def it_stays_revoked(story: Story) -> None:
    first, second = story.results["gateway"]
    token = story.run(tokens_of_hashes([HASH]))[HASH]

    assert token.state is TokenState.REVOKED and token.revoked_by == "ada", "a use brought it back"
    assert story.results["ada"].done, "a use kept it from being revoked"
    assert (first, second) != (TokenState.REVOKED, TokenState.LIVE), (
        "it let somebody pass after it was revoked"
    )


used = Scenario("revoke token × use", stored, [revoking("ada"), Actor("gateway", using)], it_stays_revoked)


def test_a_use_neither_brings_a_token_back_nor_stops_a_revoke(race: Race) -> None:
    race(used)
