"""Texts become vectors: by hashing, which needs no model and no network, or by a provider that speaks HTTP."""

from __future__ import annotations

import base64
import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Protocol

from examples.chatbot.web import post

DIMENSIONS = 1024
GRAM_LENGTH = 4
GRAM_WEIGHT = 0.3  # of a part of a word, beside 1 for the whole
_STOPWORDS = """
a about after all also am an and any are as at be been before but by can could did do does for from had
has have  how i if in into is it its may me more must my no not of on once one only or our out over own
so some such than  that the their them then there these they this to under up us was we were what when
where which who why will  with within without would you your
"""
STOPWORDS = frozenset(_STOPWORDS.split())

Vector = Sequence[float]


class Embedder(Protocol):
    """Whatever makes vectors. One call takes many texts."""

    def embed(self, texts: Sequence[str]) -> list[Vector]: ...


class Hashing:
    """Words and their parts, hashed to a fixed number of dimensions with a sign, and scaled to length 1.

    Parts of words let "refunds" find "refund". The same text gives the same vector on every machine.
    """

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [_vector(text) for text in texts]


class Provider:
    """A provider of embeddings over HTTP, asked as the well-known ones are: `{"input": [...]}`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        answer = post(self._url, {"input": list(texts)})
        return [row["embedding"] for row in answer["data"]]


def likeness(one: Vector, other: Vector) -> float:
    """The cosine of two vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def packed(vector: Vector) -> str:
    """A vector as a column of text: both engines keep that alike."""
    return base64.b64encode(array("f", vector).tobytes()).decode()


def unpacked(text: str) -> Vector:
    return array("f", base64.b64decode(text))


def _vector(text: str) -> Vector:
    vector = [0.0] * DIMENSIONS
    for feature, count in Counter(_features(text)).items():
        number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        weight = (1.0 if feature.startswith("=") else GRAM_WEIGHT) * (1.0 + math.log(count))
        vector[(number >> 1) % DIMENSIONS] += weight if number & 1 else -weight
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else vector


def _features(text: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    for word in re.findall(r"[a-z0-9]+", plain):
        if word in STOPWORDS:
            continue
        yield f"={word}"
        marked = f"<{word}>"
        for start in range(len(marked) - GRAM_LENGTH + 1):
            yield marked[start : start + GRAM_LENGTH]
