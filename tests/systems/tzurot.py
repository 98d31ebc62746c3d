"""Tzurot on Fencerow: a chat bot's answers from slow and moody language models, and imports from a busy site."""

from dataclasses import dataclass

from fencerow import App, Backoff, Job
from tests.systems.outside import Service, ServiceError

app = App()  # FENCEROW_URL
llm, site = Service("reply"), Service("pages")
PATIENT = Backoff(base_s=2, factor=2, jitter=0)
BUSY, CENSORED = 429, 451


@dataclass
class Reply:
    success: bool
    text: str


@app.job(queue="ai-requests", attempts_max=3, backoff=PATIENT, timeout_s=1200, expires_s=12 * 3600)
async def answer(job: Job, message: str) -> Reply:
    try:
        return Reply(True, await llm.ask(message))
    except ServiceError as error:
        if error.status_code == CENSORED:
            return Reply(False, "the provider will not answer this")
        raise


@app.job(queue="imports", attempts_max=3, backoff=PATIENT, timeout_s=1200, snoozes_max=48)
async def fetch(job: Job, persona: str) -> str:
    try:
        return await site.ask(persona)
    except ServiceError as error:
        if error.status_code == BUSY:
            job.snooze(30 * 60, "the site is busy")
        raise
