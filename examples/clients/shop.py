"""The jobs of which the clients beside this file know nothing but their names and arguments."""

from fencerow import App, Job
from fencerow.web import deliver_webhooks

app = App("sqlite:///shop.db")
deliver_webhooks(app)


@app.job(queue="documents")
async def pages(path: str, copies: int = 1) -> dict[str, int]:
    print(f"counting {path}")
    return {"pages": 3 * copies}


@app.job(queue="documents")
async def scan(job: Job, path: str) -> None:
    await job.log(f"scanning {path}")
    await job.log("done")
