"""Tzurot on Fencerow, its flow: what comes with a message is looked at in parallel, then it is answered."""

from fencerow import App, Job
from fencerow.flows import Flow
from tests.whole.systems.outside import Service

app = App()  # FENCEROW_URL
looking, audio = Service("looking"), Service("audio")


@app.job(queue="attachments", attempts_max=1)
async def describe(attachment: str) -> str:
    return await (audio if attachment.endswith(".ogg") else looking).ask(attachment)


@app.job(queue="answers")
async def answer(job: Job) -> list[str]:
    inputs = await app.flows.ainputs(job.id)
    seen = await inputs.aresults(describe)
    troubles = {name: error.message for name in inputs if (error := inputs.error(name)) is not None}
    return [seen.get(name) or troubles[name] for name in inputs]


def answering(attachments: list[str]) -> Flow:
    """An attachment that cannot be read keeps nobody from an answer."""
    flow = app.flow("message")
    parts = [flow.add(each, describe.call(each)) for each in attachments]
    flow.add("answer", answer.call(), after=parts)
    return flow
