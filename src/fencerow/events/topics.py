"""Topics of events, the patterns that choose among them, names of groups, and the bucket of a key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from fencerow.core.errors import InvalidInput
from fencerow.db.text import check_text
from fencerow.events.errors import InvalidTopic

TOPIC_LENGTH_MAX = 200
KEY_LENGTH_MAX = 512
GROUP_LENGTH_MAX = 100
BUCKETS = 4096
OUTCOMES = ("job.succeeded", "job.failed", "job.cancelled")

WORD = r"[A-Za-z0-9_-]+"
TOPIC = re.compile(rf"{WORD}(?:\.{WORD})*")
PATTERN = re.compile(r"(?:[A-Za-z0-9_-]+|\*)(?:\.(?:[A-Za-z0-9_-]+|\*))*")
GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_topic(topic: object) -> str:
    """Accept the topic of an event: words of letters, digits, `_` and `-`, divided by dots.

    Raises:
        InvalidTopic: it is something else, or longer than 200 characters.
    """
    return _checked(topic, "the topic", TOPIC, TOPIC_LENGTH_MAX, "words divided by dots, such as order.paid")


def check_own_topic(topic: object) -> str:
    """`check_topic`, and not one of those under which the ends of jobs are told.

    Raises:
        InvalidTopic: it cannot be used.
    """
    checked = check_topic(topic)
    if checked.startswith("job."):
        raise InvalidTopic(
            f"the topic {checked!r} begins with job.",
            "Fencerow publishes the ends of jobs under these topics",
            "choose another first word",
        )
    return checked


def check_patterns(topics: Iterable[object]) -> list[str]:
    """Accept the topics of a group, in which a word may be `*`; sorted, each once.

    `*` stands for one word or more: `order.*` fits order.paid and order.item.added, `*` fits everything.

    Raises:
        InvalidTopic: there is none, or one cannot be used.
    """
    if isinstance(topics, str):
        raise InvalidTopic(
            f"topics is the text {ascii(topics)[:60]}", "a list of them is expected", "pass [topic]"
        )
    found = {
        _checked(each, "a topic", PATTERN, TOPIC_LENGTH_MAX, "words divided by dots, or * for any of them")
        for each in topics
    }
    if not found:
        raise InvalidTopic("no topic was given", "a group reads at least one", 'pass topics=["order.*"]')
    return sorted(found)


def check_group(name: object) -> str:
    """Accept the name of a group.

    Raises:
        InvalidTopic: it cannot be used.
    """
    return _checked(name, "the group", GROUP, GROUP_LENGTH_MAX, "letters, digits and _ . : - are expected")


def check_key(key: object) -> str | None:
    """Accept the key whose events stay in order, or None.

    Raises:
        InvalidInput: it is no text of 1 to 512 characters, or holds control characters.
    """
    return None if key is None else check_text(key, "the event's key", KEY_LENGTH_MAX)


def matches(pattern: str, topic: str) -> bool:
    """Whether a pattern that was accepted fits a topic."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", r".+"), topic) is not None


def wants_outcomes(patterns: Iterable[str]) -> bool:
    """Whether a group with these topics is told how jobs end. `*` alone is not meant so: jobs must be named."""
    return any(
        pattern.startswith("job.") and matches(pattern, each) for pattern in patterns for each in OUTCOMES
    )


def bucket_of(key: str) -> int:
    """The bucket in which all events of a key are. That of an id is in its last digits, so that SQL knows it too."""
    if UUID.fullmatch(key):
        return int(key[-3:], 16)
    return int.from_bytes(sha256(key.encode()).digest()[:4], "big") % BUCKETS


def _checked(value: object, what: str, form: re.Pattern[str], length_max: int, expected: str) -> str:
    try:
        text = check_text(value, what, length_max)
    except InvalidInput as error:
        raise InvalidTopic(error.what, error.why, error.fix) from None
    if not form.fullmatch(text):
        raise InvalidTopic(f"{what} is {ascii(text)[:80]}", expected, "choose another name")
    return text
