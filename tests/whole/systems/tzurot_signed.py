"""Tzurot's answers on Fencerow where all payloads are signed: the queue lies in a store that others can write to."""

from fencerow import App
from fencerow.payloads import Sign
from tests.whole.systems.outside import Service

KEYS = {"2026-11": b"k" * 32}
app = App(seal=Sign(KEYS))  # FENCEROW_URL
llm = Service("reply")


@app.job(queue="ai-requests", attempts_max=3)
async def answer(message: str) -> str:
    return await llm.ask(message)
