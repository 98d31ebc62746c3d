"""flydocs as its customers meet it: documents come in over HTTP, and a webhook tells how each one ended."""

from fencerow import App, Backoff
from fencerow.web import deliver_webhooks
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
deliver_webhooks(app)
model, boxes = Service("pages"), Service("boxes")
PATIENT = Backoff(base_s=5, factor=2, cap_s=300, jitter=0.2)


@app.job(queue="extractions", attempts_max=3, timeout_s=1200, backoff=PATIENT)
async def extract(document: str) -> str:
    return await model.ask(document)


@app.job(queue="boxes", attempts_max=3, timeout_s=600, backoff=PATIENT)
async def refine(document: str) -> str:
    return await boxes.ask(document)
