"""A client of the HTTP gateway, for programs that cannot reach the database. See docs/guide/http-client.md."""

from __future__ import annotations

from fencerow.core.answering import answer
from fencerow.web.remote.client import RemoteClient
from fencerow.web.remote.flow_handle import RemoteFlowHandle, RemoteFlows
from fencerow.web.remote.flows import RemoteFlow
from fencerow.web.remote.handle import RemoteHandle
from fencerow.web.remote.options import RemoteOptions
from fencerow.web.remote.receiver import RemoteReceiver
from fencerow.web.remote.webhooks import RemoteWebhooks

__all__ = [
    "RemoteClient",
    "RemoteFlow",
    "RemoteFlowHandle",
    "RemoteFlows",
    "RemoteHandle",
    "RemoteOptions",
    "RemoteReceiver",
    "RemoteWebhooks",
]

for each in (
    RemoteClient,
    RemoteFlow,
    RemoteFlowHandle,
    RemoteFlows,
    RemoteHandle,
    RemoteReceiver,
    RemoteWebhooks,
):
    answer(each)
