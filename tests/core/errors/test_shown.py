"""An error of ours is read at a glance: three lines, and a traceback that ends where the user called us."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

import pytest

from fencerow import App
from fencerow.core.errors.bare import PACKAGE, bare
from fencerow.core.model.describe import describe
from fencerow.db.text import shortened
from fencerow.errors import FencerowError, JobFailed, JobNotFound, KeyConflict, Unavailable, UnknownLimit
from fencerow.testing import drain

NOWHERE = "0192d3f0-0000-7000-8000-000000000001"
FRAMES_MAX = 5  # of ours; it would be 14 and more


@pytest.fixture
def app(migrated_path: Path) -> App:
    made = App(f"sqlite:///{migrated_path}")

    @made.job(name="add", attempts_max=1)
    def add(number: int) -> None:
        raise JobNotFound(f"no number {number}", "there are others", "look again")

    return made


def test_it_has_three_lines_and_one_inside_of_another_text() -> None:
    error = JobNotFound("no job 7", "there are others", "look again")

    assert str(error) == "FR-301: no job 7\n  there are others\n  look again"
    assert f"first: {error}" == "first: FR-301: no job 7; there are others; look again"
    assert describe(error).message == error.line == "FR-301: no job 7; there are others; look again"


def test_a_failed_job_says_in_its_second_line_what_failed_it(app: App) -> None:
    handle = app.submit_by_name("add", {"number": 7})
    drain(app)

    with pytest.raises(JobFailed) as caught:
        handle.result()

    assert caught.value.what == f"job {handle.id} failed (attempts_exhausted)"
    assert (
        caught.value.why == "fencerow.errors.JobNotFound: FR-301: no number 7; there are others; look again"
    )
    assert f"`fencerow jobs show {handle.id}`" in caught.value.fix


def test_a_long_text_is_cut_between_two_words() -> None:
    assert shortened("leave it at that", 99) == "leave it at that"
    assert shortened("leave it at that", 13) == "leave it …"
    assert shortened("x" * 20, 10) == "x" * 8 + " …"
    assert shortened("a " + "x" * 20, 10) == "a xxxxxx …", "a long word is no reason to leave nothing"


def conflict(app: App) -> None:
    app.submit_by_name("add", {"number": 1}, key="k")
    app.submit_by_name("add", {"number": 2}, key="k")


def conflict_in_a_loop(app: App) -> None:
    async def main() -> None:
        async with app:
            await app.asubmit_by_name("add", {"number": 1}, key="k")
            await app.asubmit_by_name("add", {"number": 2}, key="k")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (lambda app: app.submit_by_name("add", {"number": 1}, limits="nope"), UnknownLimit),
        (lambda app: app.client.cancel(NOWHERE), JobNotFound),
        (conflict, KeyConflict),
        (conflict_in_a_loop, KeyConflict),
    ],
)
def test_its_traceback_ends_where_the_user_called_us(
    refused: Callable[[App], None], error: type[Exception], app: App
) -> None:
    with pytest.raises(error) as caught:
        refused(app)

    frames = [frame.filename for frame in extract_tb(caught.value.__traceback__)]
    assert sum(file.startswith(PACKAGE) for file in frames) <= FRAMES_MAX


E = TypeVar("E", bound=FencerowError)


def caught_in(file: str, error: E) -> E:
    """The error, as code of that file has raised and caught it."""
    exec(compile("try: raise error\nexcept Exception: pass", file, "exec"), {"error": error})  # noqa: S102
    return error


@pytest.mark.parametrize(
    ("file", "error", "left"),
    [
        (f"{PACKAGE}core/somewhere.py", JobNotFound("x"), 0),
        (f"{PACKAGE}core/somewhere.py", Unavailable("x"), 1),
        ("/srv/shop/shop.py", JobNotFound("x"), 1),
    ],
)
def test_frames_that_a_report_needs_are_kept(file: str, error: FencerowError, left: int) -> None:
    """Those of the user's own code, and those where the database is the trouble."""
    assert len(extract_tb(bare(caught_in(file, error)).__traceback__)) == left
