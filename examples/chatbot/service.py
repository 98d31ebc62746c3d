"""The chatbot's app and where everything is: what a worker loads.

fencerow worker -A examples.chatbot.service:app
"""

from __future__ import annotations

from examples.chatbot import broadcast, inbound, knowledge
from examples.chatbot.base import app

__all__ = ["app", "broadcast", "inbound", "knowledge"]
