"""What the bot makes of words: it reads what comes with a post, and answers with the sentences that say most.

No model and no network but for the attachment itself. A language model takes the place of `summary`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence

import httpx2
import msgspec

BYTES_MAX = 256 * 1024
SENTENCES = 2
SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
WORD = re.compile(r"\w{4,}")


class Attachment(msgspec.Struct, frozen=True):
    """A file that came with a post."""

    id: str
    filename: str
    url: str
    size: int = 0
    content_type: str = ""


async def read(attachment: Attachment) -> str:
    """The text of a file; of what is none, what it is.

    Raises:
        ValueError: it lies elsewhere than at Discord, or is too large.
    """
    if not attachment.content_type.startswith("text/"):
        return f"{attachment.filename} is {attachment.content_type or 'of no known type'}."
    home = os.environ.get("DISCORD_CDN", "https://cdn.discordapp.com/")
    if not attachment.url.startswith(home) or attachment.size > BYTES_MAX:
        raise ValueError(f"{attachment.filename} is not read: it is too large, or not at Discord")
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.get(attachment.url)
    answer.raise_for_status()
    return answer.text[:BYTES_MAX]


def summary(texts: Sequence[str]) -> str:
    """The sentences whose words come most often in all of it, in their order."""
    sentences = [found.strip() for text in texts for found in SENTENCE.findall(text) if found.strip()]
    words = Counter(word.lower() for each in sentences for word in WORD.findall(each))

    def weight(number: int) -> tuple[float, int]:
        own = WORD.findall(sentences[number].lower())
        return sum(words[word] for word in own) / (len(own) or 1), -number

    best = sorted(sorted(range(len(sentences)), key=weight, reverse=True)[:SENTENCES])
    return " ".join(sentences[number] for number in best) or "There is nothing to say about this."
