"""Discord's interactions over HTTP: verified, stored as jobs, answered in time, and edited by their jobs.

Extra `fencerow[discord]`.

The guide: docs/guide/discord.md.
"""

from __future__ import annotations

from fencerow.core.answering import answer
from fencerow.web.discord.api import DiscordApi
from fencerow.web.discord.endpoint import Discord, Words
from fencerow.web.discord.interaction import Interaction, ReplyTo
from fencerow.web.discord.signed import DiscordKey, verify_interaction

__all__ = [
    "Discord",
    "DiscordApi",
    "DiscordKey",
    "Interaction",
    "ReplyTo",
    "Words",
    "verify_interaction",
]

for each in (Discord, DiscordApi, DiscordKey, Words):
    answer(each)
