"""The documents example: a service that extracts typed fields, with their boxes, from PDF files.

This is all a user writes. Retries, leases, the takeover after a crash, progress, idempotent submits and
results are Fencerow's. Run its worker with `fencerow worker -A fencerow.demo.documents:app`.
"""

from __future__ import annotations

from pathlib import Path

from fencerow import App, Job
from fencerow.demo.fields import DocumentError, Extraction, combine, page_fields, read_pages

app = App()


def damaged(error: BaseException) -> bool:
    """A file that is no readable PDF stays so; only the file system's refusal is worth another attempt."""
    return isinstance(error, DocumentError) and error.reason != "unreadable"


@app.job(name="extract", queue="documents", attempts_max=3, timeout_s=120, fail_on=damaged)
def extract(job: Job, path: str, pace_s: float = 0.0) -> Extraction:
    """Extract the fields of one document, page by page; `pace_s` is a pause per page, so that people can watch."""
    parts = []
    for page in read_pages(Path(path)):
        parts.append(page_fields(page))
        job.progress(100 * page.number / page.of, f"page {page.number} of {page.of}")
        job.wait_cancelled(pace_s)
        job.raise_if_cancelled()
    found = combine(parts)
    job.log(f"{len(found.fields)} fields on {found.pages} pages")
    return found
