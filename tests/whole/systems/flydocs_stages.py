"""flydocs on Fencerow, in two stages: the text of a document is there early, and the boxes of its words come later."""

from fencerow import App, Backoff
from fencerow.flows import Flow
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
model, boxes = Service("pages"), Service("boxes")


@app.job(queue="extractions", attempts_max=3, timeout_s=1200)
async def extract(document: str) -> str:
    return await model.ask(document)


@app.job(queue="boxes", attempts_max=3, timeout_s=600, backoff=Backoff(base_s=0.01, cap_s=0.01))
async def refine(document: str) -> str:
    return await boxes.ask(document)


def reading(document: str) -> Flow:
    """The second stage has attempts, a time limit and an error of its own; the newest result is that of the flow."""
    flow = app.flow("document")
    text = flow.add("text", extract.call(document), stage=True)
    flow.add("boxes", refine.call(document), needs=[text], stage=True)
    return flow
