"""The jobs of the service: a first stage that reads fields, and a second one that finds their places, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencerow import App, Backoff, Job
from fencerow.demo.fields import (
    DocumentError,
    Extraction,
    combine,
    page_count,
    page_fields,
    read_pages,
)
from fencerow.flows import Flow

app = App()  # FENCEROW_URL


@dataclass
class Place:
    """Where a field stands, as parts of its page: for laying over a picture of any size."""

    field: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass
class Refined:
    """The fields with their places; `missing`: pages of which the places could not be found, with what was wrong."""

    found: Extraction
    places: dict[str, list[Place]]
    missing: dict[str, str]


@app.job(queue="documents", attempts_max=3, timeout_s=120)
def extract(path: str) -> Extraction:
    """The first stage. Its result can be read as soon as it has succeeded, whatever becomes of the second."""
    return combine(page_fields(page) for page in read_pages(Path(path)))


@app.job(queue="boxes", attempts_max=2, timeout_s=60, backoff=Backoff(base_s=0.05))
def page_places(path: str, number: int, torn: int) -> list[Place]:
    """One page of the second stage. `torn` is a page that cannot be read, for the show."""
    if number == torn:
        raise DocumentError("unreadable", f"page {number} is torn")
    page = next(read_pages(Path(path), first=number))
    return [Place(each.name, *each.box.fractions(page.size)) for each in page_fields(page).fields]


@app.job(queue="boxes", attempts_max=3)
def refine(job: Job, path: str, torn: int) -> Refined:
    """The second stage: its pages run beside one another, and this job keeps no slot meanwhile."""
    pages = app.flow("pages")
    for number in range(1, page_count(Path(path)) + 1):
        pages.add(f"page {number}", page_places.call(path, number, torn))
    done = pages.run_within(job)
    troubles = {name: error.message for name in done if (error := done.error(name)) is not None}
    text = app.flows.inputs(job.id).result(extract, "fields")
    return Refined(text, done.results(page_places), troubles)


def reading(path: Path, torn: int = 0) -> Flow:
    """A document: two stages of which each has its own attempts, time limit and error."""
    flow = app.flow("document")
    fields = flow.add("fields", extract.call(str(path)), stage=True)
    flow.add("places", refine.call(str(path), torn), needs=[fields], stage=True)
    return flow
