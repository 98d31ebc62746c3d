"""Flows: jobs submitted together, of which some wait for the ends of others.

    flow = app.flow("report")
    pages = [flow.add(f"page {n}", fetch.call(n)) for n in range(10)]
    flow.add("join", join.call(), needs=pages)
    flow.on_failed(tell.call("report"))
    flow.submit().wait_ended()

The guide: docs/guide/flows.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.flows.builder import Flow
    from fencerow.flows.client import FlowVerbs
    from fencerow.flows.errors import (
        FlowConflict,
        FlowCycle,
        FlowEnded,
        FlowNameTaken,
        FlowNotFound,
        FlowTooLarge,
        InvalidFlow,
        NoFlowResult,
        UnknownFlowJob,
    )
    from fencerow.flows.flow_job import FlowJob
    from fencerow.flows.handle import FlowHandle
    from fencerow.flows.inputs import FlowInputs
    from fencerow.flows.looking import CallbackRecord, FlowCounts, FlowJobRecord, FlowRecord
    from fencerow.flows.moving import FlowCancelAnswer, FlowReviveAnswer
else:
    _WHERE = {
        "Flow": "builder",
        "FlowJob": "flow_job",
        "FlowVerbs": "client",
        **dict.fromkeys(
            (
                *("FlowConflict", "FlowCycle", "FlowEnded", "FlowNameTaken", "FlowNotFound", "FlowTooLarge"),
                *("InvalidFlow", "NoFlowResult", "UnknownFlowJob"),
            ),
            "errors",
        ),
        "FlowHandle": "handle",
        "FlowInputs": "inputs",
        **dict.fromkeys(("CallbackRecord", "FlowCounts", "FlowJobRecord", "FlowRecord"), "looking"),
        **dict.fromkeys(("FlowCancelAnswer", "FlowReviveAnswer"), "moving"),
    }
    __getattr__ = lazily(__name__, {name: f"fencerow.flows.{where}" for name, where in _WHERE.items()})

__all__ = [
    "CallbackRecord",
    "Flow",
    "FlowCancelAnswer",
    "FlowConflict",
    "FlowCounts",
    "FlowCycle",
    "FlowEnded",
    "FlowHandle",
    "FlowInputs",
    "FlowJob",
    "FlowJobRecord",
    "FlowNameTaken",
    "FlowNotFound",
    "FlowRecord",
    "FlowReviveAnswer",
    "FlowTooLarge",
    "FlowVerbs",
    "InvalidFlow",
    "NoFlowResult",
    "UnknownFlowJob",
]
