"""Sends a canary: submits it, kills the process that runs it, waits until it is done elsewhere, and removes all of it.

The processes are our own, made for this and serving a queue of their own; no worker of the user's is touched. Whoever
sweeps takes it back, as it would any job: the user's workers, or the second process of the canary.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO

import msgspec

from fencerow.core.app import JobsApp
from fencerow.core.config import CoreConfig
from fencerow.core.errors import FencerowError, IllegalMove, JobNotFound
from fencerow.core.model.job import JobRecord
from fencerow.core.model.person import Person
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.connect import DEFAULT_URL
from fencerow.core.wing import witnessed
from fencerow.db.run import Steps, execute, first_column, operation
from fencerow.doctor.canary.member import NAME, QUEUE, Orders, made
from fencerow.doctor.canary.trial import Trial
from fencerow.doctor.errors import CanaryRefused
from fencerow.operators.job_verbs import JobVerbs

START_S = 60.0  # for a process to start and to claim
MORE_S = 60.0  # beyond the promised bound, after which nobody waits any longer
LOOK_S = 0.2
LEAVE_S = 10.0
LINES_MAX = 400

Tell = Callable[[Trial], None]


@operation(writes="jobs")
def note_canary(job_id: str, *, actor: str) -> Steps[list[str]]:
    """Say in its timeline who sent it; by this the audit log has it."""
    return first_column((yield from execute("note_canary", id=job_id, queue=QUEUE, actor=actor)))


class CanaryMember:
    """One process of the canary."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log

    async def says(self, word: str) -> None:
        """Wait until it says so.

        Raises:
            CanaryRefused: it ended, or said nothing in time.
        """
        assert self._process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                while line := await self._process.stdout.readline():
                    if line.strip() == word.encode():
                        return
        raise CanaryRefused(
            "a process of the canary did not come so far that it "
            + ("was ready" if word == "ready" else "ran"),
            self._last_words() or f"it said nothing within {START_S:g} s",
            "ask `fencerow doctor` whether a worker could start here",
        )

    async def kill(self) -> None:
        """By SIGKILL; returns when it is dead."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def leave(self) -> None:
        """Let it end in order, and kill it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._process.wait()
        if self._process.returncode is None:
            await self.kill()

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:LINES_MAX] if lines else ""


@contextlib.asynccontextmanager
async def member(config: CoreConfig, *, hangs: bool) -> AsyncIterator[CanaryMember]:
    """A process that serves the canary's queue, while the block lasts."""
    orders = Orders(dataclasses.asdict(config), hangs)
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fencerow.doctor.canary.member"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
        one = CanaryMember(process, log)
        try:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(orders) + b"\n")
            with contextlib.suppress(
                ConnectionError
            ):  # it has ended already; whoever waits for its word is told
                await process.stdin.drain()
            yield one
        finally:
            await one.leave()


async def send(
    config: CoreConfig, person: Person, *, within_s: float | None = None, tell: Tell = lambda _: None
) -> Trial:
    """Send a canary and measure it; `tell` hears of each step. It takes about `lease_s` + `sweep_s`, and `within_s`
    at most, by default a minute more than these. Whatever happens, its job and its processes are gone afterwards.

    Raises:
        CanaryRefused: another one is under way, or a process of it could not start.
        DatabaseError: the database cannot be used.
    """
    config = dataclasses.replace(config, url=config.url or DEFAULT_URL, labels=None)
    app = made(Orders(dataclasses.asdict(config), hangs=False))
    try:
        app.check_or_create()
        return await _Sending(app, config, person, tell).sent(within_s)
    finally:
        await app.aclose()


class _Sending:
    """One canary under way."""

    def __init__(self, app: JobsApp, config: CoreConfig, person: Person, tell: Tell) -> None:
        self._app = app
        self._config = config
        self._verbs = JobVerbs(witnessed(app.engine, person), actor=person.name)
        self._actor = person.name
        self._tell = tell

    async def sent(self, within_s: float | None) -> Trial:
        limit_s = within_s or self._config.lease_s + self._config.sweep_s + MORE_S
        trial = await self._submitted(limit_s)
        try:
            async with member(self._config, hangs=True) as first:
                await first.says("runs")
                trial = self._told(trial, claimed_us=(await self._job(trial)).claimed_at_us)
                async with member(self._config, hangs=False) as second:
                    await second.says("ready")
                    await first.kill()
                    now_us: int = await self._app.engine.arun(store.clock())
                    trial = self._told(trial, killed_us=now_us)
                    return await self._recovered(trial, limit_s)
        finally:
            await self._removed(trial.job_id)

    async def _submitted(self, limit_s: float) -> Trial:
        handle = await self._app.asubmit_by_name(
            NAME, {}, unique="canary", attempts_max=1, expires_s=limit_s + 2 * START_S
        )
        if handle.answer != "inserted":
            raise CanaryRefused(
                f"another canary is under way: job {handle.id}",
                "two of them would disturb each other's measure",
                f"wait until it has ended, or end it: `fencerow jobs cancel {handle.id}`",
            )
        await self._verbs.engine.arun(note_canary(handle.id, actor=self._actor))
        job = await self._app.client.aget(handle.id)
        trial = Trial(
            job_id=job.id,
            lease_s=self._config.lease_s,
            sweep_s=self._config.sweep_s,
            sent_us=job.submitted_at_us,
        )
        return self._told(trial)

    async def _recovered(self, trial: Trial, limit_s: float) -> Trial:
        """Wait for its end; `limit_s` after the kill nobody waits any longer."""
        job = await self._job(trial)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not job.is_final:
                    await asyncio.sleep(LOOK_S)
                    job = await self._job(trial)
        back = [each for each in await self._verbs.atimeline(trial.job_id) if each.kind == "reclaimed"]
        if not back:
            return self._told(trial, trouble=f"nobody took it back within {limit_s:g} s")
        trial = self._told(trial, reclaimed_us=back[-1].at_us, reclaimed_by=back[-1].actor)
        if job.attempt > 1:
            trial = self._told(trial, taken_us=job.claimed_at_us)
        if job.state is State.SUCCEEDED:
            return self._told(trial, done_us=job.ended_at_us)
        return self._told(trial, trouble=f"it came back, and then was {job.state.value}")

    async def _removed(self, job_id: str) -> None:
        """Nothing of the job is left: it has ended, or is ended here."""
        with contextlib.suppress(FencerowError):
            if not (await self._app.client.aget(job_id)).is_final:
                await self._app.client.acancel(job_id, reason="the canary is over")
            with contextlib.suppress(IllegalMove, JobNotFound):
                await self._verbs.adelete(job_id)

    async def _job(self, trial: Trial) -> JobRecord:
        return await self._app.client.aget(trial.job_id)

    def _told(self, trial: Trial, **found: object) -> Trial:
        known = msgspec.structs.replace(trial, **found)
        self._tell(known)
        return known
