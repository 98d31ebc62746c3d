"""What is asked of a document in the scenarios, in place of examples/documents/reading.py: a script answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from examples.documents.reading import Place, damaged
from fencerow.demo.fields import Extraction
from tests.whole.systems.outside import Service

__all__ = ["damaged", "fields_of", "pages_of", "places_of"]

HEAD = b"%PDF-1.7 "
model, counting, boxes = Service("pages"), Service("counting"), Service("boxes")


def fields_of(file: Path) -> Extraction:
    subject = file.read_bytes().removeprefix(HEAD).decode()
    return Extraction(1, 1, [], [], asyncio.run(model.ask(subject)))


def places_of(file: Path, number: int) -> list[Place]:
    subject = file.read_bytes().removeprefix(HEAD).decode()
    return [Place(asyncio.run(boxes.ask(subject)), 0.0, 0.0, 1.0, float(number))]


def pages_of(file: Path) -> int:
    counting.ask_now(file.name)
    return 1
