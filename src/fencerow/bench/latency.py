"""How late does a job start that an idle worker gets: from the call of submit to the first line of the handler."""

from __future__ import annotations

import json
import random
import socket
import tempfile
import time
from collections.abc import Iterator

from fencerow.app import App
from fencerow.bench import table
from fencerow.bench.figure import Figure, percentile
from fencerow.bench.member import member
from fencerow.bench.place import BareConnection, BenchDatabase
from fencerow.bench.sizes import SLOTS, Sizes
from fencerow.bench.working import CHANNEL
from fencerow.core.model.ids import new_id

WARM = 10  # left out: the first ones open connections
PAUSE_S = (0.008, 0.016)


def measure(place: BenchDatabase, sizes: Sizes) -> Iterator[Figure]:
    count = sizes.latencies + WARM
    app = App(config=place.config)

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None: ...

    try:
        # A path of its own: that of a socket may be a hundred characters long.
        with place.engine() as engine, place.raw(engine) as raw, tempfile.TemporaryDirectory() as folder:
            ear = f"{folder}/ear"
            engine.run(table.clear())
            with (
                member(place, "serve", slots=SLOTS) as ours,
                member(place, "bare", count=count, ear=ear) as bare,
            ):
                time.sleep(sizes.settle_s)
                for _ in range(count):
                    _pause()
                    noop.submit(time.monotonic_ns())
                    _pause()
                    _raw_submit(raw, ear)
                mine = _ms(ours.ask(ask="late", count=count))
                floor = _ms(bare.answer())
    finally:
        app.close()
    for share in (0.5, 0.9, 0.99):
        what = f"submit to start, idle worker, p{share * 100:g}"
        yield Figure("latency", what, percentile(mine, share), "ms", percentile(floor, share))


def _pause() -> None:
    time.sleep(random.uniform(*PAUSE_S))  # noqa: S311 (that no timer meets it in step)


def _ms(told: dict[str, list[int]]) -> list[float]:
    return [late_ns / 1e6 for late_ns in told["late_ns"][WARM:]]


def _raw_submit(raw: BareConnection, ear: str) -> None:
    args = json.dumps({"t": time.monotonic_ns()})
    if raw.takes_arrays:
        raw.run("raw_insert_notify", id=new_id(), args=args, channel=CHANNEL)
        return
    raw.run("raw_insert", id=new_id(), args=args, now_us=time.time_ns() // 1000)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
        mouth.sendto(b"", ear)
