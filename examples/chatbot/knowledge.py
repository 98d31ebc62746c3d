"""What the assistant knows: files become chunks with vectors, each source replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from examples.chatbot.base import OUTSIDE, connected, execute
from examples.chatbot.embedding import Embedder, Provider, likeness, unpacked

embedder: Embedder = Provider(f"{OUTSIDE}/v1/embeddings")
LIKENESS_MIN = 0.15  # below it nothing that is known answers the question


@dataclass(frozen=True)
class Found:
    """The chunk that is nearest to a question."""

    source: str
    heading: str
    text: str
    likeness: float


def search(workspace: str, question: str) -> Found | None:
    """The chunk that answers best, or None if none is near enough."""
    (asked,) = embedder.embed([question])
    with connected() as db:
        rows = execute(
            db, "SELECT source, heading, text, vector FROM chunks WHERE workspace = ?", (workspace,)
        )
    found = [Found(*row[:3], likeness(asked, unpacked(row[3]))) for row in rows]
    best = max(found, key=lambda each: each.likeness, default=None)
    return best if best and best.likeness >= LIKENESS_MIN else None


@dataclass(frozen=True)
class Indexed:
    """What became of a source: `replaced`, `unchanged` (the same content was there) or `outdated` (a newer one was)."""

    source: str
    outcome: str
    chunks: int
