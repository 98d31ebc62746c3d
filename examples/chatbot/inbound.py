"""What people write to the bot. Channels bring an event again until they are sure, and now and then under a new id."""

from __future__ import annotations

from dataclasses import dataclass

from examples.chatbot import knowledge
from examples.chatbot.base import app, connected
from examples.chatbot.messages import Message, deliver, keep
from fencerow.guards.once import DedupeWindow

SAME_WITHIN_S = 60.0
UNKNOWN = "I do not know that. A colleague will write to you."

window = DedupeWindow(app, "inbound", SAME_WITHIN_S)


@dataclass(frozen=True)
class Event:
    """As the channel's webhook brings it."""

    id: str
    workspace: str
    sender: str
    text: str


def receive(event: Event) -> bool:
    """Take an event in; false if it was there before. The job exists if, and only if, this commits."""
    with connected() as db:
        sender = f"{event.workspace}/{event.sender}"
        if not window.admit(sender, event.id, content=event.text, connection=db).is_new:
            return False
        return not answer.using(key=event.id, connection=db).submit(event).replay


@app.job(queue="inbound")
def answer(event: Event) -> str:
    """Keep what was asked, look for the answer, and send it. May run twice: each step has the event's id."""
    keep(Message(event.id, event.workspace, event.sender, "in", event.text))
    found = knowledge.search(event.workspace, event.text)
    text = found.text if found else UNKNOWN
    deliver(Message(f"re/{event.id}", event.workspace, event.sender, "out", text))
    return text
