"""The same service, and two groups that hear of each document of which the first stage is done."""

from __future__ import annotations

import importlib

from fencerow import Backoff
from fencerow.events import Event, consumer
from tests.whole.systems import documents
from tests.whole.systems.outside import Service

importlib.reload(documents)
app = documents.app
heard = {"billing": Service("billing"), "search": Service("search")}
poison: set[tuple[str, str | None]] = set()  # which group cannot take the end of which job
SOON = Backoff(base_s=0.05, cap_s=0.05, jitter=0.0)


def _hears(group: str) -> None:
    @consumer(app, group=group, topics=["job.succeeded"], partitions=1, deliveries_max=3, backoff=SOON)
    async def hear(event: Event) -> None:
        if event.data["name"] == "extract":
            await heard[group].ask(f"{event.id} {event.key}")
            if (group, event.key) in poison:
                raise RuntimeError("nobody can take this")


for name in heard:
    _hears(name)
