"""Plays cases over many connections at once, beside one caller who asks what is right and must be served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tools.attack.case import JSON, NOBODY_ID, Case
from tools.attack.described import Document, Operation, operations
from tools.attack.judging import Judge
from tools.attack.place import Place
from tools.attack.raw import SMUGGLED
from tools.attack.wire import Answer, Wire

CALLERS = 16
FAULTS_KEPT = 200
ASIDE = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@dataclass
class Outcome:
    """What came of a play."""

    requests: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    served_ms: list[float] = field(default_factory=list)

    def blame(self, case: Case, fault: str) -> None:
        """Keep what is wrong, if not too much is known already."""
        if len(self.faults) < FAULTS_KEPT:
            body = (case.raw or case.body or b"")[:200]
            self.faults.append(
                f"[{case.group}] {case.method} {case.target[:120]} {case.headers!r:.200} {body!r}: {fault}"
            )


async def described(place: Place) -> Document:
    """The document that this gateway gives of itself."""
    async with Wire(place.port) as wire:
        answer = await wire.ask(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    found: Document = json.loads(answer.body)
    return found


async def play(place: Place, document: Document, cases: Iterable[Case], callers: int = CALLERS) -> Outcome:
    """All of them, in this order, `callers` at once."""
    outcome, judge, left = Outcome(), Judge(document), iter(cases)
    served = asyncio.create_task(_served(place, outcome))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(_caller(place, judge, left, outcome))
    finally:
        served.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await served
    return outcome


async def _caller(place: Place, judge: Judge, left: Iterator[Case], outcome: Outcome) -> None:
    async with Wire(place.port) as wire:
        for case in left:
            outcome.requests[case.group] += 1
            try:
                answer = await wire.ask(
                    case.written(place.tokens), head=case.method == "HEAD", alone=case.alone
                )
                if case.raw is not None and case.raw.endswith(SMUGGLED) and await _smuggled(place, case):
                    outcome.blame(case, "what lies within a request was answered as one")
            except TimeoutError:
                outcome.blame(case, "no answer in a minute")
                await wire.close()
                continue
            outcome.statuses[answer.status] += 1
            if fault := await judge.fault(case, answer):
                outcome.blame(case, fault)


async def _smuggled(place: Place, case: Case) -> bool:
    """Send it once more, read all that is answered until the connection ends: whether the rest was a request."""
    assert case.raw is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    said = bytearray()
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):
            writer.write(case.raw + ASIDE)
            while part := await reader.read(65536):
                said += part
    writer.close()
    return b"/smuggled" in said


async def _served(place: Place, outcome: Outcome) -> None:
    """A caller with a good request, ten times a second."""
    case = Case("served", "GET", f"/v1/jobs/{place.jobs['own']}")
    async with Wire(place.port) as wire:
        while True:
            began = time.perf_counter()
            answer = await wire.ask(case.written(place.tokens))
            outcome.served_ms.append((time.perf_counter() - began) * 1e3)
            if answer.status != 200 or json.loads(answer.body)["state"] != "queued":
                outcome.blame(case, f"the good caller was answered {answer.status}")
            await asyncio.sleep(0.1)


async def told_apart(place: Place, document: Document) -> list[str]:
    """Where a caller learns that a job of others is there: its answer differs from that for no job at all."""
    asked = [each for each in operations(document) if "{id}" in each.path]
    async with Wire(place.port) as wire:
        told = {
            (each.method, each.path, query): await _told(place, wire, each, query)
            for each in asked
            for query in ("", "?wait=0", "?only=queued")
        }
    return [f"{each}: {answers}" for each, answers in told.items() if len(answers) > 1]


async def _told(place: Place, wire: Wire, each: Operation, query: str) -> set[object]:
    """What a caller who may not see them is answered for jobs of others, and for none."""
    body = json.dumps(each.example()).encode() if each.body is not None else None
    told: set[object] = set()
    for job_id in (place.jobs["foreign"], place.jobs["cancelled"], NOBODY_ID):
        target = each.target(job_id) + query
        case = Case("foreign", each.method.upper(), target, token="narrow", headers=[JSON], body=body)
        told.add(_without_ids(await wire.ask(case.written(place.tokens)), job_id))
    return told


def _without_ids(answer: Answer, job_id: str) -> tuple[object, ...]:
    body = answer.body.replace(job_id.encode(), b"<id>")
    if answer.headers.get("x-request-id"):
        body = body.replace(answer.headers["x-request-id"].encode(), b"<request>")
    hidden = ("x-request-id", "date")
    return (
        answer.status,
        body,
        tuple((name, value) for name, value in answer.headers.items() if name not in hidden),
    )
