"""Writes histories that never happened: each act with its own instants, in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fencerow_proof.history.recorder import SUFFIX

JOBLESS = {
    "claim",
    "fall_back",
    "reclaim",
    "time_out",
    "expire",
    "die",
    "adopt",
}


class Scribe:
    """One process's file. Every act is an operation of one step."""

    def __init__(self, folder: Path, process: str = "p1", boot: str = "b", wall_ms: int = 0) -> None:
        self.path = folder / f"{process}{SUFFIX}"
        self._process = process
        self._op = 0
        self._write(kind="begin", mono_us=0, wall_us=wall_ms * 1000, boot=boot, version=1, sweep_s=1.0)

    def act(self, verb: str, start: int, end: int | None, kind: str = "ok", **facts: Any) -> None:
        """One act; without an `end` nobody knows how it came out."""
        self.step(verb, start, end, [facts], kind)

    def step(
        self, verb: str, start: int, end: int | None, jobs: list[dict[str, Any]], kind: str = "ok"
    ) -> None:
        """One step on several jobs. One of them may have a verb of its own."""
        self._op += 1
        asked = [{k: v for k, v in jobs[0].items() if k in ("holder", "limit")}] if verb in JOBLESS else jobs
        for facts in asked:
            self._line("invoke", verb, start, facts)
        if end is not None:
            for facts in jobs:
                self._line(kind, verb, end, facts)

    def life(self, job: str, start: int = 10, holder: str = "h1") -> None:
        """Submitted, claimed, succeeded: 40 ms."""
        self.act("submit", start, start + 5, job=job, new=True)
        self.claim(job, 1, start + 10, start + 15, holder)
        self.end("succeed", job, 1, start + 30, start + 35, holder)

    def claim(self, job: str, attempt: int, start: int, end: int | None, holder: str, **facts: Any) -> None:
        self.act(
            "claim",
            start,
            end,
            job=job,
            attempt=attempt,
            holder=holder,
            **{"limit": 1, "state": "running", **facts},
        )

    def end(self, verb: str, job: str, attempt: int, start: int, end: int | None, holder: str) -> None:
        state = {"succeed": "succeeded", "fail": "failed", "requeue": "queued"}[verb]
        self.act(verb, start, end, job=job, attempt=attempt, holder=holder, state=state)

    def reclaim(self, job: str, attempt: int, start: int, end: int | None, holder: str) -> None:
        self.act("reclaim", start, end, job=job, attempt=attempt, holder=holder, state="queued")

    def lease(self, holder: str, start: int, until: int, every: int, lease_s: float) -> None:
        """A worker that registers and renews as long as it lives."""
        self.act("register", start, start + 1, holder=holder, lease_s=lease_s, slots=2)
        for at in range(start + every, until, every):
            self.act("renew", at, at + 1, holder=holder)

    def raw(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def _line(self, kind: str, verb: str, at: int, facts: dict[str, Any]) -> None:
        self._write(**{"kind": kind, "op": self._op, "step": 1, "verb": verb, "mono_us": at * 1000, **facts})

    def _write(self, **fields: Any) -> None:
        self.raw(json.dumps({"process": self._process, **fields}) + "\n")
