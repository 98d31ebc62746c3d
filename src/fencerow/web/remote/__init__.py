"""A client of the HTTP gateway, for programs that cannot reach the database. See docs/guide/http-client.md."""

from __future__ import annotations

from fencerow.web.remote.client import RemoteClient, RemoteOptions
from fencerow.web.remote.handle import RemoteHandle
from fencerow.web.remote.receiver import RemoteReceiver

__all__ = ["RemoteClient", "RemoteHandle", "RemoteOptions", "RemoteReceiver"]
