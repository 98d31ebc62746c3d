"""Messages lie in several databases, each workspace in one."""

from __future__ import annotations

from dataclasses import dataclass

from examples.chatbot.base import OUTSIDE, connected, execute, shard_of
from examples.chatbot.web import post


@dataclass(frozen=True)
class Message:
    """The id is that of the recipient or of the event that it belongs to."""

    id: str
    workspace: str
    address: str
    direction: str
    text: str


def deliver(message: Message) -> str:
    """Have the channel bring a message to its address, and return the channel's id for it.

    May be repeated: the channel delivers it once per id, and so does our own database.
    """
    answer = post(f"{OUTSIDE}/v1/messages", {"to": message.address, "text": message.text}, key=message.id)
    keep(message)
    return str(answer["id"])


def keep(message: Message) -> None:
    """Write a message into the shard of its workspace. May be repeated."""
    columns = (message.id, message.workspace, message.address, message.direction, message.text)
    with connected(shard_of(message.workspace)) as db:
        execute(
            db,
            "INSERT INTO messages (id, workspace, address, direction, text, written_at) "
            "VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP) ON CONFLICT (id) DO NOTHING",
            columns,
        )
