"""The agent: a conversation in durable steps, in which a person allows what costs money.

Whatever kills its worker, the next one goes on: what the model said and what the tools did is remembered, so the model
is not asked twice for a turn that it has finished, and money moves once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow import App, Job
from fencerow.errors import SignalTimeout

from examples.agent.model import Message, Model, ScriptedModel, ToolCall
from examples.agent.tools import TOOLS

TURNS_MAX = 20
DAY_S = 24 * 3600.0


@dataclass(frozen=True)
class Reply:
    """What the model has said in one turn, and the tools that it wants."""

    text: str
    calls: list[ToolCall] = field(default_factory=list)


model: Model = ScriptedModel()


async def think(job: Job, messages: list[Message]) -> Reply:
    """One turn of the model; its tokens are seen while they come."""
    text, calls = "", []
    async for said in model.reply(messages):
        if isinstance(said, ToolCall):
            calls.append(said)
        else:
            await job.emit(said)
            text += said
    return Reply(text.strip(), calls)


async def use(job: Job, place: str, call: ToolCall) -> str:
    """What a tool has found or done, if it may: asked for once, whatever fails."""
    tool = TOOLS[call.name]
    if tool.needs_approval:
        try:
            answer = await job.wait_for(f"allow {place}", timeout_s=DAY_S)
        except SignalTimeout:
            answer = {"yes": False}
        if not answer["yes"]:
            return "a person refused it"
    return await job.step(f"{call.name} {place}", tool.use, f"{job.id} {place}", call.args)


def declare(app: App) -> None:
    """Adds the agent to an app."""

    @app.job(name="agent", attempts_max=5, crashes_max=100)
    async def agent(job: Job, task: str) -> str:
        messages = [Message("user", task)]
        for turn in range(TURNS_MAX):
            reply = await job.step(f"turn {turn}", think, job, list(messages))
            messages.append(Message("model", reply.text))
            if not reply.calls:
                return reply.text
            for number, call in enumerate(reply.calls):
                messages.append(Message("tool", await use(job, f"{turn}.{number}", call)))
        return "I did not come to an end."
