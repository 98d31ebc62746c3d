"""flydocs on Fencerow: documents are extracted by models, in the background, each exactly once per key."""

from fencerow import App, Backoff, Job
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
model = Service("pages")


@app.job(
    queue="extractions",
    attempts_max=3,
    timeout_s=1200,
    backoff=Backoff(base_s=5, factor=2, cap_s=300, jitter=0.2),
)
async def extract(job: Job, document: str) -> str:
    await job.progress(10, "extracting")
    return await model.ask(document)
