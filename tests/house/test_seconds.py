"""Wherever a caller gives a length of time, a timedelta does as well as a number of seconds."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any, cast

import pytest

from fencerow import Config
from fencerow.config import Config as Whole
from fencerow.core.config import settings
from fencerow.errors import ConfigError
from tests.house.tree import ROOT
from tools.public.listed import PAGES, entries
from tools.public.names import Entry

# Called by the worker, and implemented by the user: it is given seconds.
CALLED_BY_US = {"Chore.end", "Reaper.end"}


def callables() -> Iterator[Entry]:
    """All public functions and methods, and what makes the classes."""
    for page in PAGES:
        for entry in entries(page):
            yield entry
            yield from entry.members


def lengths(entry: Entry) -> dict[str, str]:
    """The parameters that are lengths of time, each with its type as it is written."""
    try:
        found = inspect.signature(entry.found, eval_str=False).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        each.name: str(each.annotation)
        for each in found
        if (each.name.endswith("_s") and not each.name.endswith("_per_s")) or each.name == "seconds"
    }


def is_called(entry: Entry) -> bool:
    """Whether users call it. Records are read; the few that users make have tests of their own."""
    is_record = hasattr(entry.found, "__struct_fields__") or hasattr(entry.found, "__dataclass_fields__")
    made = entry.kind == "class" and bool(entry.signatures) and not is_record
    return (made or entry.kind in ("function", "method")) and entry.name not in CALLED_BY_US


def test_every_length_of_time_may_be_a_timedelta() -> None:
    asked = {entry.name: lengths(entry) for entry in callables() if is_called(entry)}
    without = {
        (name, parameter): kind
        for name, found in asked.items()
        for parameter, kind in found.items()
        if "Seconds" not in kind and "timedelta" not in kind
    }

    assert without == {}, "take `Seconds` and call in_seconds"
    assert sum(map(len, asked.values())) > 30


def test_settings_in_code_take_a_timedelta() -> None:
    made = Config(lease_s=timedelta(minutes=1), shutdown_s=timedelta(0), retention_failed_s=timedelta(days=3))

    assert (made.lease_s, made.shutdown_s, made.retention_failed_s) == (60.0, 0.0, 259_200.0)
    for name in (each.name for each in settings(Config) if each.name.endswith("_s")):
        with pytest.raises(ConfigError, match=name):
            Config(**cast(Any, {name: timedelta(days=-1)}))


def test_type_checkers_are_told_every_setting() -> None:
    text = (
        (ROOT / "src" / "fencerow" / "config.py").read_text("utf-8").partition("self,\n            *,\n")[2]
    )
    told = dict(
        line.strip().rstrip(",").split(": ", 1)
        for line in text.partition(") -> None")[0].strip().splitlines()
    )

    expected = {
        each.name: str(each.type).replace("float", "Seconds") if each.name.endswith("_s") else str(each.type)
        for each in fields(Whole)
    }
    found = {name: kind.removesuffix(" = ...") for name, kind in told.items()}
    assert found == expected, "say in Config.__init__, in src/fencerow/config.py, what was added or changed"
