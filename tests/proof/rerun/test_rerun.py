"""`fencerow rerun JOB --here`: what a stored job would do now, beside what it did; its database stays as it is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.testing import drain
from fencerow_proof.arena.held import OF_SERVERS, TABLES
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.store.stage import rows, table
from tests.kit.jobs import AnyEngine
from tests.proof.check import conftest as checked

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures
empty_url = checked.empty_url

SHOP = """
import os
import sqlite3
from pathlib import Path

from fencerow import App, Job
from fencerow.payloads import Seal

app = App({app})


def made(_url: str) -> None:
    with sqlite3.connect("books.db") as books:
        books.execute("CREATE TABLE sold (number INTEGER)")


def price() -> int:
    return int(os.environ["PRICE"])


def mail(number: int) -> str:
    with open("mailed", "a") as mailed:
        mailed.write("mailed")
    return "mailed"


def mailing(number: int) -> str:
    return "posted"


@app.job
def told(number: int) -> None: ...


@app.job({job})
def order(job: Job, number: int) -> int:
    {first}
    cost = job.step("price", price)
    job.step("mail", mail, number)
    answer = job.wait_for("approved")
    app.submit(told.call(number))
    job.submit_next(told.call(number + 1))
    {last}
    return cost + len(answer["by"])
"""
Write = Callable[..., None]
ON_A_FILE = pytest.mark.usefixtures("file")  # what no engine decides


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is a file that the application makes."""
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{tmp_path / 'jobs.sqlite'}")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write the application's code, and import it anew."""
    monkeypatch.setenv("PRICE", "7")

    def write(
        *, app: str = "", job: str = "", first: str = "pass", last: str = "pass", text: str = SHOP
    ) -> None:
        forget()
        (tmp_path / "shop.py").write_text(text.format(app=app, job=job, first=first, last=last))
        importlib.invalidate_caches()
        sys.path[:0] = [str(tmp_path)]
        importlib.import_module("shop")

    yield write
    forget()


def forget() -> None:
    if (there := sys.modules.pop("shop", None)) is not None:
        there.app.close()


def ran() -> str:
    """The id of a job that ran to its end."""
    app = sys.modules["shop"].app
    app.check_or_create()
    handle = app.submit_by_name("order", {"number": 3})
    app.client.signal(handle.id, "approved", {"by": "ada"})
    drain(app)
    assert handle.result(0) == 10
    return str(handle.id)


def everything(engine: AnyEngine) -> dict[str, int | list[str]]:
    """All rows of all our tables."""
    is_server = isinstance(engine, PostgresEngine)
    names = [name for name in TABLES if is_server or name not in OF_SERVERS]
    return {
        name: sorted(str(row) for row in rows(engine, f"SELECT * FROM {table(engine, name)}"))
        for name in names
    }


def scratch(engine: AnyEngine, request: pytest.FixtureRequest) -> tuple[str, ...]:
    if not isinstance(engine, PostgresEngine):
        return ()
    return ("--scratch", request.getfixturevalue("empty_url"))


@pytest.mark.usefixtures("url")
def test_a_job_comes_to_the_same_beside_its_database(
    engine: AnyEngine, write: Write, cli: Cli, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    write()
    job_id = ran()
    before, mailed = everything(engine), (tmp_path / "mailed").read_text()

    told = cli("rerun", job_id, "--here", "-A", "shop:app", "--json", *scratch(engine, request))

    assert told.code == 0, told
    assert [(each["name"], each["verdict"]) for each in told.json["steps"]] == [
        ("price", "remembered"),
        ("mail", "remembered"),
        ("signal approved", "remembered"),
    ]
    assert told.json["now"]["result"] == told.json["then"]["result"] == 10
    assert told.json["follow_ups"] == ['told {"number":4}']
    assert [each["table"] for each in told.json["written"]] == ["jobs submitted"]
    assert everything(engine) == before, "something real was written"
    assert (tmp_path / "mailed").read_text() == mailed


@ON_A_FILE
@pytest.mark.prove
def test_what_is_done_anew_and_differs_is_shown(
    write: Write, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    job_id = ran()
    monkeypatch.setenv("PRICE", "8")

    told = cli(
        *(
            "rerun",
            job_id,
            "--here",
            "-A",
            "shop:app",
            "--from",
            "price",
            "--outside",
            "shop:mail,answer=shop:mailing",
        ),
    )

    assert told.code == 1, told
    for line in (
        "  price: differs: 7, and now 8",
        '  mail: differs: "mailed", and now "posted"',
        '  signal approved: remembered: {"data":{"by":"ada"}}',
        "now: succeeded (11)",
        "differs: its result",
    ):
        assert line in told.out.splitlines()
    assert any(line.startswith("  shop:mail  (") for line in told.out.splitlines())


@ON_A_FILE
def test_an_effect_that_nobody_declared_is_refused(write: Write, cli: Cli, tmp_path: Path) -> None:
    write()
    job_id = ran()
    mailed = (tmp_path / "mailed").read_text()

    told = cli("rerun", job_id, "--here", "-A", "shop:app", "--from", "mail", "--json")

    assert told.code == 1
    assert (told.json["now"]["state"], told.json["now"]["error"].partition(":")[0]) == (
        "failed",
        "UndeclaredEffect",
    )
    assert [each.split()[0] for each in told.json["refused"]] == ["file"]
    assert (tmp_path / "mailed").read_text() == mailed


@ON_A_FILE
@pytest.mark.prove
def test_code_that_asks_for_another_step_is_named(write: Write, cli: Cli) -> None:
    write()
    job_id = ran()
    write(first="job.step('weigh', price)")

    told = cli("rerun", job_id, "--here", "-A", "shop:app")

    assert told.error == "FR-963"
    assert "'weigh'" in told.err and "'price'" in told.err


@ON_A_FILE
def test_what_cannot_run_again_is_refused(write: Write, cli: Cli) -> None:
    write(app='seal=Seal({"k": b"1" * 32}, marks=b"m" * 32)')
    job_id, here = ran(), ("--here", "-A", "shop:app")
    wrong = {
        "FR-201": cli("rerun", job_id, "-A", "shop:app"),
        "FR-777": cli("rerun", job_id, *here, "--from", "nowhere"),
        "FR-301": cli("rerun", "01a22808-c8d8-743b-96e8-58f0dcda1916", *here),
    }
    write()
    wrong["FR-311"] = cli("rerun", job_id, *here)
    write(text="from fencerow import App\n\napp = App()\n")
    wrong["FR-202"] = cli("rerun", job_id, *here)

    assert {code: told.error for code, told in wrong.items()} == {code: code for code in wrong}
