"""What a handler passes to its log may be anything: it raises nothing there, and makes the line no other job's."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow.core.store.running import running
from fencerow.logs import ConsoleFormatter, JsonFormatter, LogFields

JOB: Any = SimpleNamespace(job_id="mine", name="send", attempt=2, queue="mail", headers=None)


def record(name: str = "shop", **extra: Any) -> logging.LogRecord:
    made = logging.getLogger(name).makeRecord(name, logging.INFO, "f", 1, "text", (), None, extra=extra)
    token = running.set(JOB)
    try:
        for _ in range(2):  # two handlers have the filter
            assert LogFields().filter(made)
    finally:
        running.reset(token)
    return made


def line(**extra: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(JsonFormatter().format(record(**extra)))
    return found


def circular() -> dict[str, Any]:
    ring: dict[str, Any] = {"leaf": 1}
    ring |= {"one": ring, "other": [ring] * 200}
    return ring


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    return value


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "value",
    [circular(), deep(), 10**5000, {Hostile(): Hostile()}],
    ids=["circular", "deep", "long", "hostile"],
)
def test_no_value_raises_in_the_code_that_logs(value: object) -> None:
    assert len(json.dumps(line(x=value))) < 100_000
    assert "text" in ConsoleFormatter().format(record(topic=value))


def test_a_handler_cannot_name_another_job() -> None:
    found = line(job_id="forged", attempt=9, at="1970", level="debug")

    assert (found["job_id"], found["job"], found["attempt"], found["level"]) == ("mine", "send", 2, "info")
    given = {name: value for name, value in found.items() if name.startswith("extra_")}
    assert given == {"extra_job_id": "forged", "extra_attempt": 9, "extra_at": "1970", "extra_level": "debug"}


def test_our_own_lines_may_be_about_another_job() -> None:
    assert vars(record("fencerow.job", job_id="other"))["job_id"] == "other"
