"""What the assistant knows: files become chunks with vectors, each source replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from examples.chatbot.base import OUTSIDE, app, connected, execute
from examples.chatbot.chunking import chunks
from examples.chatbot.embedding import Embedder, Provider, likeness, packed, unpacked
from examples.chatbot.reading import sections
from fencerow.guards.replace import replace_for

MODEL = b"hashing-1024/70 words"  # a change of it changes every hash, so that all is computed anew
LIKENESS_MIN = 0.15  # below it nothing that is known answers the question

embedder: Embedder = Provider(f"{OUTSIDE}/v1/embeddings")


@dataclass(frozen=True)
class Indexed:
    """What became of a source: `replaced`, `unchanged` (this content stands there) or `outdated` (a newer does)."""

    source: str
    outcome: str
    chunks: int = 0


@dataclass(frozen=True)
class Found:
    """The chunk that is nearest to a question."""

    source: str
    heading: str
    text: str
    likeness: float


@app.job(queue="knowledge", timeout_s=300)
def index(workspace: str, name: str, path: str, version: int) -> Indexed:
    """Read, cut and embed a file. The provider is asked only for content that is not there, in one call."""
    source, data = f"{workspace}/{name}", Path(path).read_bytes()
    content_hash = sha256(MODEL + data).hexdigest()
    with replace_for(
        app, table="chunks", source_column="source", source=source, version=version, content_hash=content_hash
    ) as replacing:
        if not replacing.needed:
            return Indexed(source, replacing.found.name.lower())
        cut = chunks(sections(Path(name), data))
        vectors = embedder.embed([f"{chunk.heading}. {chunk.text}" for chunk in cut])
        rows = [
            {
                "number": number,
                "workspace": workspace,
                "heading": chunk.heading,
                "text": chunk.text,
                "vector": packed(vector),
            }
            for number, (chunk, vector) in enumerate(zip(cut, vectors, strict=True))
        ]
        if not replacing.insert(rows):
            return Indexed(source, "outdated")
        return Indexed(source, "replaced", len(rows))


def search(workspace: str, question: str) -> Found | None:
    """The chunk that answers best, or None if none is near enough."""
    (asked,) = embedder.embed([question])
    with connected() as db:
        rows = execute(
            db, "SELECT source, heading, text, vector FROM chunks WHERE workspace = ?", (workspace,)
        )
    found = [
        Found(source, heading, text, likeness(asked, unpacked(vector)))
        for source, heading, text, vector in rows
    ]
    best = max(found, key=lambda each: each.likeness, default=None)
    return best if best and best.likeness >= LIKENESS_MIN else None
