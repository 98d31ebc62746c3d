"""Three kinds of probes at every provider, one at a time at each; and a job for all of them together.

A probe is made once. If it fails it is not tried again: the next fire of its schedule comes soon enough. What is
recorded is what the provider did. If our own side fails, the job fails, so that nobody takes an outage of ours for one
of theirs, or for a success.
"""

from __future__ import annotations

import time

import httpx

from examples.probes.base import SCALE, WINDOWS, app, write
from examples.probes.registry import active, listed
from fencerow import Job

# How often in an hour, and how long at most in seconds: docs/operations.md says what these two mean together.
RATES = {"upload": 4.0, "retrieve": 6.0, "lifecycle": 1.0}
LIMITS_S = {"upload": 300 * SCALE, "retrieve": 240 * SCALE, "lifecycle": 600 * SCALE}
PATIENCE = 0.6  # of the limit: how long we wait for an answer


def at(provider: str) -> str:
    """What only one probe may have at a time, whatever its kind; and what counts its pace."""
    return f"provider/{provider}"


@app.job(queue="probes", attempts_max=1, exclusive=at, limits=at, timeout_s=LIMITS_S["upload"])
async def upload(job: Job, provider: str) -> str:
    return await probe(job, "upload", provider)


@app.job(queue="probes", attempts_max=1, exclusive=at, limits=at, timeout_s=LIMITS_S["retrieve"])
async def retrieve(job: Job, provider: str) -> str:
    return await probe(job, "retrieve", provider)


@app.job(queue="probes", attempts_max=1, exclusive=at, limits=at, timeout_s=LIMITS_S["lifecycle"])
async def lifecycle(job: Job, provider: str) -> str:
    return await probe(job, "lifecycle", provider)


@app.job(queue="global", timeout_s=60)
async def count_providers(job: Job) -> int:
    """One for all providers. After an outage it is made once, and never beside itself."""
    found = len(await listed())
    async with job.transaction() as db:
        await write(db, "INSERT INTO counted (job_id, providers) VALUES (?, ?)", (job.id, found))
    return found


async def probe(job: Job, kind: str, name: str) -> str:
    """Ask the provider, and record what it did, once, in one commit with the end of the job."""
    # Not what the schedule knew when it fired: a provider may have been blocked since.
    provider = next((each for each in await listed() if each.name == name and not each.blocked), None)
    if provider is None:
        return "left out"
    began = time.monotonic()
    outcome = await ask(f"{provider.url}/{kind}", PATIENCE * LIMITS_S[kind])
    row = (job.id, name, kind, outcome, time.monotonic() - began)
    async with job.transaction() as db:
        statement = "INSERT INTO results (job_id, provider, kind, outcome, took_s) VALUES (?, ?, ?, ?, ?)"
        await write(db, statement, row)
    return outcome


async def ask(url: str, patience_s: float) -> str:
    """What the provider did."""
    try:
        async with httpx.AsyncClient(timeout=patience_s, trust_env=False) as http:
            answer = await http.post(url)
    except httpx.TimeoutException:
        return "timed out"
    except httpx.HTTPError:
        return "failed"
    return "succeeded" if answer.is_success else "failed"


for job, kind in ((upload, "upload"), (retrieve, "retrieve"), (lifecycle, "lifecycle")):
    app.schedule(
        job,
        rate=RATES[kind],
        entities=active,
        misfire="all",
        catchup_max=10,
        windows=WINDOWS,
        in_window="defer",
    )
app.schedule(count_providers, interval_s=1800, windows=WINDOWS)
