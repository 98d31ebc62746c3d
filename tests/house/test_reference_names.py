"""The reference's index says from which package each public name is imported: all of them are, and each answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from inspect import iscoroutine, isfunction

from fencerow.errors import FencerowError
from tests.house.tree import ROOT

PACKAGE = re.compile(r"## \[([\w.]+)\]|From `([\w.]+)`:")
NAMES = re.compile(r"\| \[`(\w+)`\]\([^)]*\)(?:, `(\w+)`)? \|")
# Made or called by others than users, or within a frame of Python's own (context managers, formatters of logging).
ANSWERED_BY_PYTHON = {
    "ConsoleFormatter", "DeclaredJob", "Draft", "JsonFormatter", "LogFields", "Ran",
    "bound", "processing", "publishing", "verify_interaction",
}  # fmt: skip
NOWHERE = "Given by an object, imported from nowhere:"


def claimed() -> Iterator[tuple[str, str]]:
    """Each package and name that the index claims."""
    package = ""
    for line in (ROOT / "docs" / "reference" / "index.md").read_text("utf-8").splitlines():
        if said := PACKAGE.match(line):
            package = said[1] or said[2]
        elif line == NOWHERE:
            package = ""
        elif package and (names := NAMES.match(line)):
            yield from ((package, name) for name in names.groups() if name)


def test_every_name_is_imported_from_the_package_that_the_index_says() -> None:
    untrue = [f"{package}.{name}" for package, name in claimed() if not hasattr(import_module(package), name)]

    assert not untrue
    assert {("fencerow", "App"), ("fencerow.app", "HandoverTo"), ("fencerow.events", "apublish")} <= set(
        claimed()
    )


def wrong_call(package: str, name: str) -> BaseException | None:
    """What it answers; None for what no function of ours makes: an enum, a record of C, a protocol."""
    found = getattr(import_module(package), name)
    made_by = getattr(found, "__init__", None) if isinstance(found, type) else found
    if not isfunction(made_by) or issubclass(type(found), EnumMeta) or getattr(found, "_is_protocol", False):
        return None
    try:
        said = found(slotz=3)
        if iscoroutine(said):
            said.send(None)
    except Exception as error:
        return error
    return AssertionError("it was taken")


def test_every_name_says_what_does_not_fit_when_it_is_called() -> None:
    answers = {(package, name): wrong_call(package, name) for package, name in claimed()}

    assert {
        name
        for (_, name), answer in answers.items()
        if answer is not None and not isinstance(answer, FencerowError)
    } == ANSWERED_BY_PYTHON
    called = {each for each, answer in answers.items() if answer}
    assert {("fencerow", "Config"), ("fencerow", "Retry"), ("fencerow.events", "apublish")} <= called
