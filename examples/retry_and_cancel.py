"""What becomes of a job that fails, of one that must not be tried again, and of one that is cancelled."""

import asyncio

from fencerow import App, Backoff, Fail, Job, JobCancelled, JobFailed

app = App("sqlite:///retry_and_cancel.db")


@app.job(attempts_max=3, backoff=Backoff(base_s=0.1))
async def fetch(job: Job, page: str) -> str:
    """Fails twice, as a site does that is down for a moment. Any error is tried again, unless it tells not to."""
    if job.failures < 2:
        raise ConnectionError(f"{page} is down")
    return f"{page} after {job.attempt} attempts"


@app.job
async def charge(card: str) -> None:
    """A decision of the handler: whatever attempts are left, this one was the last."""
    raise Fail(f"card {card} was refused")


@app.job
async def count_to(job: Job, number: int) -> int:
    """A long job. When somebody cancels it, CancelledError is raised at its `await`, as in any task."""
    for share in range(number):
        await job.progress(100 * share / number)
        await asyncio.sleep(0.05)
    return number


async def main() -> None:
    async with app, app.worker():
        page = await fetch.asubmit("news")
        print("fetched:", await page.aresult(timeout_s=20))

        payment = await charge.asubmit("4711")
        try:
            await payment.aresult(timeout_s=20)
        except JobFailed as failed:
            print("failed:", failed.error.message)

        later = await count_to.using(delay_s=3600).asubmit(3)
        print("while it waits, a cancel is", await later.acancel(reason="not needed"))

        running = await count_to.asubmit(1_000_000)
        while not (await running.arefresh()).progress:
            await asyncio.sleep(0.05)
        print("while it runs, a cancel is", await running.acancel())
        try:
            await running.aresult(timeout_s=20)
        except JobCancelled:
            print("state:", await running.astatus())


asyncio.run(main())
