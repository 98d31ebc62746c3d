"""The bot: what is asked in a channel is answered there in order, however long it takes and whatever dies meanwhile.

`fencerow serve --discord` takes the interactions, `fencerow worker` does the work, and `deliver` replies.
"""

from __future__ import annotations

import hashlib
import logging
import os
from typing import Any

import msgspec
from fencerow import App, Job, State
from fencerow.app import Call, Unique
from fencerow.errors import DiscordRefused, MutexBusy
from fencerow.guards.mutex import Mutex
from fencerow.handovers import Handover, HandoverTo
from fencerow.web.discord import Discord, DiscordApi, Interaction, ReplyTo

from examples.bot.reading import Attachment, read, summary

SAME_S = 5  # the same post again within so long is the same job
TYPING_S = 8  # Discord shows it for ten seconds
NOTICE_S, TYPING_MAX_S = 5 * 60, 10 * 60
TAKE_S = 30  # longer than an edit, and than the wait for its turn
HOLD_S = 10 * 60  # no answer waits longer for those before it
LASTS_S = 14 * 60  # an interaction can be replied to for fifteen minutes
DAY_S = 24 * 3600
NOTICE = "This takes longer than usual. I am still on it."
SORRY = "I could not do this. Please try it again."

log = logging.getLogger(__name__)
app = App()  # FENCEROW_URL
discord = Discord(app)  # FENCEROW_DISCORD_PUBLIC_KEY
api = DiscordApi(
    bot_token=os.environ["DISCORD_BOT_TOKEN"],
    url=os.environ.get("DISCORD_API", "https://discord.com/api/v10"),
)
in_order = HandoverTo("discord", key=lambda channel, **_: channel, wait_for_earlier_s=HOLD_S)


def post(channel: str, text: str, attachments: list[Attachment], **_: Any) -> str:
    """What makes two posts the same: the channel, the text, and what came with it."""
    told = msgspec.json.encode([channel, text, [(each.filename, each.size) for each in attachments]])
    return hashlib.sha256(told).hexdigest()


@discord.command("ask")
def on_ask(interaction: Interaction) -> Call[str]:
    found = (interaction.data.get("resolved") or {}).get("attachments") or {}
    attachments = [msgspec.convert(each, Attachment) for each in found.values()]
    text = str(interaction.options["text"])
    return answer.call(interaction.reply, interaction.channel_id or "", text, attachments)


@discord.command("export", ephemeral=True)
def on_export(interaction: Interaction) -> Call[str]:
    return export.using(unique=Unique(by=interaction.user_id, period_s=DAY_S)).call(
        interaction.reply, interaction.channel_id or ""
    )


@app.job(queue="media", attempts_max=3, timeout_s=60)
async def look(attachment: Attachment) -> str:
    return await read(attachment)


@app.job(
    queue="answers",
    unique=Unique(by=post, period_s=SAME_S),
    handover=in_order,
    expires_s=LASTS_S,
)
async def answer(job: Job, reply: ReplyTo, channel: str, text: str, attachments: list[Attachment]) -> str:
    """What came with the post is looked at in parallel; what cannot be read keeps nobody from an answer."""
    await attend.using(key=job.id).asubmit(reply, channel, job.id)
    if not attachments:
        return summary([text])
    flow = app.flow("attachments")
    names = {flow.add(each.id, look.call(each)).name: each.filename for each in attachments}
    found = await flow.arun_within(job)
    seen = await found.aresults(look)
    missing = [f"I could not read {names[each]}." for each in names if each not in seen]
    return "\n".join([summary([text, *seen.values()]), *missing])


@app.job(queue="answers", handover=in_order, expires_s=LASTS_S)
async def export(reply: ReplyTo, channel: str) -> str:  # noqa: ARG001 - who delivers it needs the reply
    """How much was answered in this channel. A person gets one a day."""
    answered = await app.client.alist_jobs(name="answer", states=[State.SUCCEEDED], limit=1000)
    return f"{sum(each.args['channel'] == channel for each in answered)} answers were given here."


@app.job(queue="typing", snoozes_max=TYPING_MAX_S // TYPING_S)
async def attend(job: Job, reply: ReplyTo, channel: str, answering: str) -> None:
    """Show that the bot types until the answer is there, and say so once if that takes long."""
    lasted_s = job.snoozes * TYPING_S
    if lasted_s >= TYPING_MAX_S or (await app.client.aget(answering)).is_final:
        return
    await api.typing(channel)
    if lasted_s >= NOTICE_S:
        await job.step("notice", notify, reply, answering)
    job.snooze(TYPING_S)


async def notify(reply: ReplyTo, answering: str) -> None:
    """Say that it takes longer, but never in the place of the answer."""
    async with Mutex(app, f"reply {answering}"):
        if not (await app.client.aget(answering)).is_final:
            await api.edit(reply, NOTICE)


async def deliver() -> None:
    """Reply with what has ended, in the order of each channel, for ever."""
    async for end in app.client.handovers("discord").aeach(lease_s=TAKE_S):
        await show(end)


async def show(end: Handover) -> None:
    """Reply with the end of a job and confirm it, or release it for a while. A repeated edit shows the same."""
    receiver = app.client.handovers("discord")
    args = (await app.client.aget(end.job_id)).args
    text = await end.aresult() if end.succeeded else SORRY
    try:
        async with Mutex(app, f"reply {end.job_id}"):
            await api.edit(msgspec.convert(args["reply"], ReplyTo), text[:2000])
    except (DiscordRefused, MutexBusy) as trouble:
        if isinstance(trouble, MutexBusy) or trouble.retryable:
            await receiver.arelease(end, delay_s=getattr(trouble, "retry_after", None) or TYPING_S)
            return
        log.warning("job %s has no reply: %s", end.job_id, trouble)
    await receiver.aconfirm(end)
