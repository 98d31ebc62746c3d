"""The model's side: what an agent asks of a language model, and a model that always says the same.

A real one takes its place: `reply` streams what the API of that model streams, text and calls of tools.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Message:
    """One message of the conversation: of the user, of the model, or what a tool has found."""

    role: str
    text: str


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model wants to be used."""

    name: str
    args: dict[str, Any]


class Model(Protocol):
    """A language model."""

    def reply(self, messages: Sequence[Message]) -> AsyncIterator[str | ToolCall]:
        """What it says to this conversation, token by token, and which tools it wants."""
        ...


class ScriptedModel:
    """Says what its script has for the turn, so that every run is the same."""

    def __init__(self, pause_s: float = 0.05) -> None:
        self._pause_s = pause_s  # between two tokens

    async def reply(self, messages: Sequence[Message]) -> AsyncIterator[str | ToolCall]:
        for token in _said(messages).split(" "):
            await asyncio.sleep(self._pause_s)
            yield f"{token} "
        call = _call(messages)
        if call is not None:
            yield call


def _said(messages: Sequence[Message]) -> str:
    found = [message.text for message in messages if message.role == "tool"]
    if not found:
        return "I look at the order first."
    if len(found) == 1:
        return f"It cost {json.loads(found[0])['sum']} EUR and came broken, so I want to pay that back."
    return "It is paid back." if "paid" in found[-1] else "Nobody allowed it, so nothing was paid back."


def _call(messages: Sequence[Message]) -> ToolCall | None:
    found = [message.text for message in messages if message.role == "tool"]
    if not found:
        return ToolCall("find_order", {"number": 17})
    if len(found) == 1:
        return ToolCall("pay_back", {"number": 17, "sum": json.loads(found[0])["sum"]})
    return None
