"""The reference's index says from which package each public name is imported: all of them are, and each answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from enum import EnumMeta
from importlib import import_module
from inspect import getattr_static, iscoroutine, isfunction, signature
from typing import Any

from fencerow.errors import FencerowError, WrongCall
from tests.house.tree import ROOT

PACKAGE = re.compile(r"## \[([\w.]+)\]|From `([\w.]+)`:")
NAMES = re.compile(r"\| \[`(\w+)`\]\([^)]*\)(?:, `(\w+)`)? \|")
# Made or called by others than users, or within a frame of Python's own (context managers, formatters of logging).
ANSWERED_BY_PYTHON = {
    "ConsoleFormatter", "DeclaredJob", "Draft", "JsonFormatter", "LogFields", "Ran",
    "bound", "processing", "publishing", "verify_interaction",
}  # fmt: skip
# Classes whose methods Fencerow calls, or which only tell of themselves.
CALLED_BY_US = {
    "Backoff", "BackfillStatus", "ClientBase", "ConsoleFormatter", "CoreConfig", "Endpoint", "EndpointWanted",
    "FencerowError", "FolderStore", "GitHub", "Grant", "JsonFormatter", "KafkaTopic", "Limit", "LogFields",
    "RedisStream", "RemoteBase", "Report", "RetryRule", "S3Store", "ScheduleRecord", "Scheme", "Seal", "ShardReport",
    "Sign", "StandardWebhooks", "Stripe",
}  # fmt: skip
# And methods: of the road of a submit, which has no frame too many; made by contextlib; for wings and our own programs.
NOT_ASKED = {
    "JobsApp.submit", "JobsApp.asubmit", "JobsApp.submit_many", "JobsApp.asubmit_many", "JobsApp.add_chore",
    "JobsApp.as_stored", "JobsApp.call_by_name", "JobsApp.chores_of_worker", "JobsApp.encode_arguments",
    "JobsApp.on_run", "JobsApp.on_submit", "JobsApp.submits_as", "Submits.submit", "Submits.asubmit",
    "Submittable.submit_many", "Submittable.asubmit_many", "Submittable.call_with",
    "DeclaredBase.with_options", "DedupeWindow.admitting",
    "DedupeWindow.aadmitting", "ChangeVerbs.changing",
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


def public_methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods with parameters of all classes that the index claims, by the class in which each stands."""
    for package, name in claimed():
        made = getattr(import_module(package), name)
        for owner in (
            made.__mro__ if isinstance(made, type) and not getattr(made, "_is_protocol", False) else ()
        ):
            for method in vars(owner) if owner.__module__.startswith("fencerow") else ():
                found = getattr_static(owner, method)
                if (
                    isfunction(found)
                    and not method.startswith("_")
                    and owner.__qualname__ not in CALLED_BY_US
                ):
                    yield f"{owner.__qualname__}.{method}", found


def test_every_method_with_parameters_says_what_does_not_fit() -> None:
    silent, answered = set(), 0
    for name, method in public_methods():
        named = signature(method).parameters.values()
        if len(named) < 2 or any(each.kind is each.VAR_KEYWORD for each in named):
            continue  # nothing can be misspelt, or it asks `refuse_unknown`
        try:
            said = method(object(), slotz=3)
            if iscoroutine(said):
                asyncio.run(said)
        except WrongCall:
            answered += 1
        except TypeError:
            silent.add(name)

    assert silent == NOT_ASKED
    assert answered > 250
