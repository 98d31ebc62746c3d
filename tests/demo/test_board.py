"""The demo in the browser: its documents, and the boxes over their pages."""

from __future__ import annotations

import struct
from pathlib import Path

import httpx

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.demo.board import made
from fencerow.demo.fields import extract
from fencerow.demo.model import Extraction
from fencerow.demo.show import samples
from fencerow.web.dashboard.local import LocalDashboard
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.visiting import Visits
from tests.web.gateway.conftest import ended


def read(path: str, pace_s: float = 0.0) -> Extraction:
    return extract(path)


async def test_boxes_lie_over_the_pages_of_a_document(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/demo.db"
    path = next(each for each in samples() if each.name == "timesheet_landscape.pdf")
    async with App(url) as app:
        job = app.job(name="extract", queue="documents")(read)
        gone = await job.asubmit("gone.pdf")
        done = await job.asubmit(str(path))
        async with app.worker():
            await ended(app, done.id)
    looking, board = made(url)
    visits = Visits(httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url="http://127.0.0.1"))
    listed = await visits.see("/documents")
    page = await visits.see(f"/documents/{done.id}")
    (image,) = [found for tag, found in page.tags if tag == "image"]
    picture = await visits.client.get(image["href"])
    names = (f"{done.id}/2.png", f"{done.id}/x.png", f"{gone.id}/1.png", f"{new_id()}/1.png", "x/1.png")
    missing = [await visits.client.get(f"/pictures/{name}") for name in names]
    await board.aclose()
    await looking.aclose()

    assert path.name in listed.text and "Consultant Timesheet" in page.text
    boxes = [found for tag, found in page.tags if tag == "rect" and found.get("class") == "box"]
    width, height = float(image["width"]), float(image["height"])
    assert len(boxes) > 4 and width > height
    assert all(0 < float(each["x"]) < width and 0 < float(each["y"]) < height for each in boxes)
    assert picture.headers["content-type"] == "image/png"
    across, down = struct.unpack(">II", picture.content[16:24])
    assert abs(across / down - width / height) < 0.01
    assert [each.status_code for each in missing] == [404, 404, 404, 404, 422]


async def test_only_who_was_told_the_address_is_let_in(tmp_path: Path) -> None:
    with LocalDashboard(lambda: made(f"sqlite:///{tmp_path}/demo.db")) as local:
        root = local.url.removesuffix(f"{local.secret}/")
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            told, guessed, bare = [
                (await http.get(each)).status_code
                for each in (f"{local.url}documents", f"{root}guess/documents", f"{root}documents")
            ]

    assert (told, guessed, bare) == (200, 404, 404)
