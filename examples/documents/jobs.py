"""All of the service: a first stage that reads fields, and a second one that finds their places, page by page.

Documents come over HTTP (`fencerow serve -A examples.documents.jobs:app`), and webhooks tell what became of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

from msgspec import Meta

from examples.documents.files import file_of, keep
from examples.documents.reading import Place
from fencerow import App, Backoff, Job
from fencerow.demo.fields import DocumentError, Extraction
from fencerow.web import deliver_webhooks

app = App()  # FENCEROW_URL
deliver_webhooks(app)
reading = import_module(os.environ.get("DOCUMENTS_READING", "examples.documents.reading"))  # or yours

Pdf = Annotated[str, Meta(pattern="^JVBERi0")]  # `%PDF-` in base64: all else is refused at the door


@dataclass
class Fields:
    """What the first stage has found; `file` is where the document lies."""

    name: str
    file: str
    found: Extraction


@dataclass
class Refined:
    """The fields with their places; `missing`: pages of which the places could not be found, with what was wrong."""

    name: str
    found: Extraction
    places: dict[str, list[Place]]
    missing: dict[str, str]


@app.job(queue="documents", attempts_max=3, timeout_s=1200, fail_on=reading.damaged)
def extract(name: str, content: Pdf) -> Fields:
    """The first stage. Its result can be read as soon as it has succeeded, whatever becomes of the second."""
    file = keep(content)
    return Fields(name, file, reading.fields_of(file_of(file)))


@app.job(queue="boxes", attempts_max=2, timeout_s=60, backoff=Backoff(base_s=0.05))
def page_places(file: str, number: int, torn: int) -> list[Place]:
    """One page of the second stage. `torn` is a page that cannot be read, for the show."""
    if number == torn:
        raise DocumentError("unreadable", f"page {number} is torn")
    places: list[Place] = reading.places_of(file_of(file), number)
    return places


@app.job(queue="boxes", attempts_max=3, timeout_s=600)
def refine(job: Job, torn: int = 0) -> Refined:
    """The second stage: its pages run beside one another, and this job keeps no slot meanwhile."""
    text = app.flows.inputs(job.id).result(extract, "fields")
    pages = app.flow("pages")
    for number in range(1, reading.pages_of(file_of(text.file)) + 1):
        pages.add(f"page {number}", page_places.call(text.file, number, torn))
    done = pages.run_within(job)
    troubles = {name: error.message for name in done if (error := done.error(name)) is not None}
    return Refined(text.name, text.found, done.results(page_places), troubles)
