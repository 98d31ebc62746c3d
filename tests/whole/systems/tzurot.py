"""Tzurot on Fencerow: a chat bot's answers from slow and moody language models, and imports from a busy site."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fencerow import App, Backoff, Handle, Job
from fencerow.guards.once import DedupeWindow, once
from fencerow.handovers import HandoverTo
from tests.whole.systems.outside import Service, ServiceError

app = App()  # FENCEROW_URL
llm, site = Service("reply"), Service("pages")
POSTS_S = 300.0
posts = DedupeWindow(app, "posts", POSTS_S, timeout_s=60.0)
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


@app.job(
    queue="ai-requests",
    timeout_s=1200,
    retention_s=24 * 3600,
    handover=HandoverTo("bot", key=lambda channel, **_: channel, wait_for_earlier_s=18 * 60),
)
async def converse(channel: str, message: str) -> Reply:
    return Reply(True, await llm.ask(message))


@app.job(queue="ai-requests", timeout_s=1200)
async def transcribe(job: Job, recording: str) -> str:
    for percent, part in ((10, "beginning"), (50, "middle"), (100, "end")):
        await job.progress(percent, part)
        await llm.ask(f"{part} of {recording}")
    return f"text of {recording}"


async def deliver(channels: dict[str, list[str]]) -> None:
    """The bot posts what is there, in the order of the messages of each channel, and confirms it."""
    bot = app.client.handovers("bot")
    while taken := await bot.atake(10):
        for each in taken:
            channels.setdefault(each.key, []).append(
                each.result["text"] if each.succeeded else str(each.state)
            )
            await bot.aconfirm(each)


def receive(message_id: str, text: str, images: int = 0, recordings: int = 0) -> Handle[Reply]:
    """One job per message, however often it comes in."""
    patience_s = min(1200, 15 + max(273 if images else 0, 1533 if recordings else 0) + 480)
    return answer.using(key=message_id, timeout_s=patience_s).submit(text)


@app.job(queue="ai-requests", attempts_max=3, backoff=PATIENT)
async def reply(message_id: str, text: str) -> str:
    """One reply for a message, whichever job comes to it; a job that is run again is no duplicate of itself."""
    processed = once(app, f"processed:{message_id}", lifetime_s=3600, stale_s=3600)
    return await processed.acall(llm.ask, text)


def post(persona: str, channel: str, text: str, db: Any) -> tuple[str, bool]:
    """A job's id and whether it is a new one: over HTTP 202, or 200 for the same post within five minutes.

    Admission and job are committed together by the caller's transaction, so that no crash comes between them.
    """
    admitted = posts.admit(f"{persona}:{channel}", str(uuid4()), content=text, connection=db)
    if admitted.is_new:
        answer.using(id=admitted.value, connection=db).submit(text)
    return admitted.value, admitted.is_new


@app.job(queue="imports", attempts_max=3, backoff=PATIENT, timeout_s=1200, snoozes_max=48)
async def fetch(job: Job, persona: str) -> str:
    try:
        return await site.ask(persona)
    except ServiceError as error:
        if error.status_code == BUSY:
            job.snooze(30 * 60, "the site is busy")
        raise


@app.job(queue="exports", key_lifetime_s=24 * 3600)
async def export(user: str) -> str:
    return await site.ask(user)


def request_export(user: str, db: Any) -> Handle[str]:
    """One export per user and day; a replay is answered with 409. It exists if the caller's transaction commits."""
    return export.using(key=user, connection=db).submit(user)
