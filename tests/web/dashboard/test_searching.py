"""The search for jobs as people type it."""

from __future__ import annotations

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.web.dashboard.screens.jobs import narrower_searches
from fencerow.web.dashboard.searching import command, first_id, searched


def test_all_filters_are_understood_together() -> None:
    search = searched(
        'queue:mail STATE:failed state:queued tag:eu tag:"big customer" meta:n=3 key:k-1 send_mail after:2h'
    )

    assert search.odd == []
    chosen = search.chosen
    assert (chosen.queue, chosen.name, chosen.key) == ("mail", "send_mail", "k-1")
    assert chosen.states == (State.FAILED, State.QUEUED)
    assert chosen.tags == ("eu", "big customer")
    assert chosen.metadata == {"n": 3}
    assert search.after_s == 7200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("colour:red", "there are queue, state"),
        ("state:done", "the states are waiting"),
        ("after:soon", "90s, 15min"),
        ("queue:a queue:b", "one queue"),
        ("queue:", "write what you look for"),
        ("meta:x", "meta:FIELD=VALUE"),
        ("id:zz", "id"),
    ],
)
def test_what_is_not_understood_is_told_with_what_is(text: str, why: str) -> None:
    search = searched(text)

    assert len(search.odd) == 1
    assert why in (search.odd[0].why or "")
    assert command(search) is None


def test_a_token_can_be_taken_away() -> None:
    search = searched('queue:mail tag:"a b" state:failed')

    assert [each.without for each in search.tokens] == [
        'tag:"a b" state:failed',
        "queue:mail state:failed",
        'queue:mail tag:"a b"',
    ]


def test_the_beginning_of_an_id_is_one_and_a_word_is_a_job() -> None:
    assert searched("01a22594").meant is not None
    assert searched("cafe").chosen.name == "cafe"


def test_ages_are_bounds_of_ids() -> None:
    now_us = 1_800_000_000_000_000
    search = searched("after:2h before:1h")

    assert search.lowest_id(now_us) < (search.page_after(None, now_us).before_id or "")
    assert search.page_after("0" * 8, now_us).before_id == "0" * 8
    assert search.page_after(None, now_us).from_id == search.lowest_id(now_us)
    assert first_id(0) < new_id() < first_id(4_000_000_000_000_000)


def test_a_search_that_is_given_up_is_offered_over_less_time() -> None:
    def offered(text: str) -> list[str]:
        return [q for _, q in narrower_searches(searched(text))]

    assert offered("job:rare") == ["job:rare after:7d", "job:rare after:1d", "job:rare after:1h"]
    assert offered("job:rare after:1d") == ["job:rare after:1h"]
    assert offered("before:2d job:rare") == ["before:2d job:rare after:7d"]


def test_the_same_as_a_command() -> None:
    assert command(searched("queue:mail state:failed tag:a'b")) == (
        """fencerow jobs list --queue mail --state failed --tag 'a'"'"'b'"""
    )
    assert command(searched("after:1h")) is None


def test_whatever_is_typed_is_no_fault() -> None:
    for text in ('"', ":", "::", '"a:b', "tag:\x00", "a" * 5_000, "id:" + "f" * 60, "meta:=", "\ud800"):
        searched(text)
