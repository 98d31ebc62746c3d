"""The chatbot's sources: read, cut and found again by questions in other words."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from examples.chatbot import embedding
from examples.chatbot.chunking import OVERLAP_WORDS, WORDS_MAX, chunks
from examples.chatbot.embedding import Hashing, likeness, packed, unpacked
from examples.chatbot.reading import Section, sections
from examples.chatbot.sources import make_pdf

SOURCES = Path(make_pdf.__file__).parent
FILES = ("faq.md", "opening_hours.txt", "repairs.md", "rental_terms.pdf")

QUESTIONS = {
    "When are you open on Sunday?": "Opening hours",
    "How much is the deposit for an e-bike?": "What does the deposit cover?",
    "My bicycle was stolen, what now?": "Theft",
    "I have a puncture": "A flat tyre on the road",
    "can I cancel for free?": "Can I cancel my booking?",
    "how long do you keep my personal data": "6. Your data",
    "May I ride on the beach?": "5. Where you may ride",
    "what does a whole week cost?": "2. Prices",
    "How far does the battery last?": "The battery is empty",
    "is there a parking garage": "How to find us",
    "do you have a trailer for kids": "Do you rent children's seats and trailers?",
    "Can my company pay by invoice?": "7. Groups and companies",
    "Are you closed at Christmas in December?": "Holidays",
}


def read(name: str) -> list[Section]:
    path = SOURCES / name
    return sections(path, path.read_bytes())


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_chunk(question: str) -> None:
    known = [chunk for name in FILES for chunk in chunks(read(name))]
    embedder = Hashing()
    (asked,) = embedder.embed([question])
    vectors = embedder.embed([f"{chunk.heading}. {chunk.text}" for chunk in known])

    best = max(range(len(known)), key=lambda index: likeness(asked, vectors[index]))

    assert known[best].heading == QUESTIONS[question]


def test_the_pdf_is_what_its_script_makes() -> None:
    text = (SOURCES / "rental_terms.src.txt").read_text("utf-8")
    assert (SOURCES / "rental_terms.pdf").read_bytes() == make_pdf.pdf(text)
    assert [section.heading[:2] for section in read("rental_terms.pdf")] == [f"{n}." for n in range(1, 8)]


def test_chunks_are_whole_sentences_that_overlap() -> None:
    sentences = [f"Sentence number {n} says nothing that the others do not say too." for n in range(20)]
    cut = chunks([Section("Many words", [" ".join(sentences)])])

    assert len(cut) > 2
    for one, other in pairwise(cut):
        assert other.text.split()[:OVERLAP_WORDS] == one.text.split()[-OVERLAP_WORDS:]
        assert len(one.text.split()) <= WORDS_MAX
        assert one.text.endswith(".")
    told = {number for chunk in cut for number in re.findall(r"Sentence number (\d+)", chunk.text)}
    assert len(told) == len(sentences), "no sentence was lost"


def test_a_vector_survives_its_column() -> None:
    (vector,) = Hashing().embed(["a bicycle for two"])
    assert len(vector) == embedding.DIMENSIONS
    assert likeness(vector, unpacked(packed(vector))) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "data"), [("logo.png", b"text"), ("empty.md", b"\n\n"), ("bad.txt", b"\xff\xfe\xff")]
)
def test_what_cannot_be_read_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"neither|no text|decode"):
        sections(Path(name), data)
