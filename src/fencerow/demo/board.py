"""The demo in the browser: its documents beside the other screens of the dashboard, with boxes on the pages."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from fencerow.app import App
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.run import ask
from fencerow.demo.model import DocumentError, Extraction, Field
from fencerow.demo.pictures import page_png
from fencerow.operators import looking
from fencerow.operators.job_verbs import timeline_of
from fencerow.web.dashboard.also import Also
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.life import life_of
from fencerow.web.dashboard.roles import Role, Visitor
from fencerow.web.dashboard.screen import Look, Screen, Section

JOB = "extract"
SHOWN = 50
NOTES_MAX = 100
VISITOR = Visitor("you", Role.READ)  # whoever has the address


def made(url: str) -> tuple[App, Dashboard]:
    """The dashboard of the demo's database, and the app that it looks through."""
    app = App(url)

    async def authorize(_request: object) -> Visitor:
        return VISITOR

    def picture(name: str) -> bytes | None:
        job_id, _, number = name.removesuffix(".png").partition("/")
        return None if not number.isdecimal() else _page(app.client.get(parse_id(job_id)), int(number))

    return app, Dashboard(app, authorize=authorize, also=Also("fencerow.demo", SCREENS, picture))


async def documents(look: Look) -> dict[str, Any]:
    """Five statements at most: the jobs, how each stands, the workers, and the timeline of what was taken over."""
    client = look.client
    listed = await client.alist_jobs(name=JOB, limit=SHOWN)
    found = await client.arun(ask(store.read([each.id for each in listed])))
    workers = await client.workers.aregistered(limit=SHOWN)
    now_us = workers[0].now_us if workers else await look.now_us()
    records = [found[each.id] for each in reversed(listed) if each.id in found]
    again = next((each for each in records if each.attempt > 1), None)
    noted = [] if again is None else await client.arun(ask(looking.events(again.id, limit=NOTES_MAX)))
    return {
        "now_us": now_us,
        "documents": [(_name(each), each) for each in records],
        "workers": list(reversed(workers)),
        "names": {each.id: each for each in workers},
        "again": again,
        "again_name": _name(again) if again is not None else "",
        "life": None if again is None else life_of(timeline_of(again, noted), until_us=now_us),
    }


async def document(look: Look) -> dict[str, Any]:
    """Two statements: the job with its result, and the clock."""
    record = await look.client.aget(parse_id(look.params["id"]))
    result = msgspec.convert(record.result, Extraction) if record.result is not None else None
    by_page: dict[int, list[Field]] = defaultdict(list)
    for each in result.fields if result is not None else ():
        by_page[each.box.page].append(each)
    return {
        "now_us": await look.now_us(),
        "job": record,
        "name": _name(record),
        "result": result,
        "pages": [] if result is None else list(enumerate(result.sizes, 1)),
        "by_page": by_page,
    }


def _path(record: JobRecord) -> Path | None:
    path = record.args.get("path") if isinstance(record.args, dict) and record.name == JOB else None
    return Path(path) if isinstance(path, str) else None


def _name(record: JobRecord) -> str:
    path = _path(record)
    return record.name if path is None else path.name


def _page(record: JobRecord, number: int) -> bytes | None:
    path = _path(record)
    try:
        return None if path is None else page_png(path, number)
    except (OSError, DocumentError):
        return None


SCREENS = (
    Screen("documents", "/documents", "Documents", documents, section=Section.WORK, place=11, key="c"),
    Screen("document", "/documents/{id}", "Document", document, place=12),
)
