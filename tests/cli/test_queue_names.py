"""Queues whose names have a colon or a comma, on the command line."""

from __future__ import annotations

import pytest

from fencerow.cli.worker import parsed_queues
from fencerow.command.queues import named_queue
from fencerow.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        (r"tenant\:7", ["tenant:7"]),
        (r"tenant\:7:2, mail:5", {"tenant:7": 2, "mail": 5}),
        ("tenant:7:2", {"tenant:7": 2}),
        ("tenant:7", {"tenant": 7}),
        (r"a\,b,c\\d", ["a,b", "c\\d"]),
        ("mail, docs", ["mail", "docs"]),
    ],
)
def test_a_backslash_takes_a_colon_or_a_comma_into_the_name(text: str, queues: object) -> None:
    assert parsed_queues(text) == queues


@pytest.mark.parametrize("text", ["mail:high", "mail:", ":5", "a,,b", r"tenant\:7,mail:5"])
def test_what_may_mean_either_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="a colon in a name is written"):
        parsed_queues(text)


def test_one_queue_is_read_alike() -> None:
    assert named_queue(r"tenant\:7:20") == ("tenant:7", "20")
