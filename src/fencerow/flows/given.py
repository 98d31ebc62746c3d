"""What is given to a flow while it is put together, checked: whom a job waits for, and calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fencerow.core.app.calls import Call
from fencerow.db.text import shown
from fencerow.flows.errors import InvalidFlow
from fencerow.flows.flow_job import FlowJob
from fencerow.flows.graph import Policy


def awaited_names(name: str, policy: Policy, given: object) -> list[str]:
    """The names that somebody waits for."""
    if isinstance(given, str | FlowJob) or not isinstance(given, Iterable):
        raise InvalidFlow(
            f"{policy}= of job {name!r} of the flow is {shown(given)}",
            "a list of jobs of the flow is expected, or of their names",
            f"write {policy}=[...]",
        )
    names: list[str] = []
    for each in given:
        if not isinstance(each, str | FlowJob):
            raise InvalidFlow(
                f"{policy}= of job {name!r} of the flow names {shown(each)}",
                "what flow.add returned is expected, or a name",
                "add that job to the flow first, and name it here",
            )
        names.append(each if isinstance(each, str) else each.name)
    return names


def fit_call(call: object, what: str) -> Call[Any]:
    """The call, if it can be part of a flow."""
    if not isinstance(call, Call):
        raise InvalidFlow(
            f"{what} is {shown(call)}",
            "a call of a declared job is expected",
            "write job.call(...) or job.using(...).call(...)",
        )
    options = call.recipe.options
    given = {
        "connection": options.connection is not None,
        "key": options.key is not None,
        "id": options.id is not None,
        "unique": call.recipe.agrees_on("unique"),
    }
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise InvalidFlow(
            f"{what} is submitted with {wrong[0]}=",
            "a job of a flow is always a new one, stored with its flow",
            "leave it out; app.flow(name, key=...) makes a repeated flow one, flow.submit(connection=...) stores it in "
            "your transaction",
        )
    return call
