"""`fencerow top` in a real terminal: what it shows, that it bears a lost database, and how it leaves the terminal."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator

import pytest

from fencerow.core.model.state import State
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Unavailable
from fencerow.operators.queues import pause_queue
from fencerow.operators.top.frame import frame
from fencerow.operators.top.look import FailedJob, Glance, QueueNow, look
from fencerow.operators.top.looker import Looker
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.store.stage import bring
from tests.kit.jobs import AnyEngine, new_job, running, submit
from tests.kit.pace import PATIENCE_S
from tests.kit.terminal import terminal

cli, url, _clean = command_line.cli, command_line.url, command_line._clean

NOW_US = 1_700_000_000_000_000


@pytest.fixture
def lite_url(lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a fresh migrated file, set in the environment."""
    monkeypatch.setenv("FENCEROW_URL", command_line.url_of(lite))
    return command_line.url_of(lite)


def some_jobs(engine: AnyEngine) -> None:
    submit(engine, new_job(), new_job(), new_job(queue="slow", delay_s=600.0))
    bring(engine, State.FAILED)
    running(engine)
    engine.run(pause_queue("slow", actor="ada"))


def test_a_look_counts_what_is_there(engine: AnyEngine) -> None:
    some_jobs(engine)

    found = look(engine)

    mail, slow = found.queues
    assert (mail.queue, mail.due, mail.later, mail.running, mail.ended, mail.failed) == (
        "mail",
        2,
        0,
        1,
        1,
        1,
    )
    assert (slow.queue, slow.due, slow.later, slow.paused) == ("slow", 0, 1, True)
    assert mail.first_due_us is not None and slow.first_due_us is None
    assert [each.name for each in found.failures] == ["send"]
    assert {worker.name for worker in found.workers} == {"w"}


def test_it_counts_as_the_list_of_queues_does(cli: Cli, url: str, engine: AnyEngine) -> None:
    some_jobs(engine)

    listed = {each["queue"]: each["jobs"] for each in cli("queues", "--json").json}
    shown = {each["queue"]: each for each in cli("top", "--json").json["queues"]}

    assert listed.keys() == shown.keys()
    for queue, jobs in listed.items():
        now = shown[queue]
        assert now["due"] + now["later"] == jobs["queued"]
        assert (now["running"], now["waiting"]) == (jobs["running"], jobs["waiting"])


def test_once_prints_one_frame_of_plain_text(cli: Cli, url: str, engine: AnyEngine) -> None:
    some_jobs(engine)

    result = cli("top", "--once")

    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert result.out.startswith("fencerow top  ")
    assert re.search(r"^mail +2 +0 +1 ", result.out, re.MULTILINE)


def test_without_a_terminal_it_says_what_to_use(cli: Cli, url: str) -> None:
    result = cli("top")

    assert (result.code, result.error) == (2, "FR-201")
    assert "--once" in result.err


def test_q_ends_it_and_the_terminal_is_as_it_was(url: str, engine: AnyEngine) -> None:
    some_jobs(engine)

    with terminal("top") as shown:
        shown.until("q ends")
        first = shown.shown
        shown.resize(60, 12)
        os.kill(shown.process.pid, signal.SIGWINCH)
        shown.until("q ends")
        while max(len(line) for line in lines_of(shown.shown)) > 60:
            shown.until("q ends")
        shown.type("q")
        code = shown.ended()

        assert code == 0
        assert first.index("\x1b[?1049h") < first.index("fencerow top")
        assert shown.shown.endswith("\x1b[?25h\x1b[?1049l")
        assert shown.is_as_found()


def lines_of(text: str) -> list[str]:
    """The lines of the last whole frame."""
    drawn = text.rpartition("\x1b[H")[2]
    return [re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", line) for line in drawn.split("\r\n")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(lite_url: str, number: signal.Signals) -> None:
    with terminal("top") as shown:
        shown.until("q ends")
        os.kill(shown.process.pid, number)
        code = shown.ended()

        assert code == (0 if number is signal.SIGINT else 128 + number)
        assert shown.shown.endswith("\x1b[?25h\x1b[?1049l")
        assert shown.is_as_found()


def test_an_error_that_waiting_cannot_mend_ends_the_looking() -> None:
    seen = threading.Semaphore(0)
    wrong = ValueError("a fault of ours")

    def ask() -> Glance:
        raise wrong

    looker = Looker(ask, 0.0, seen.release)
    looker.start()
    assert seen.acquire(timeout=PATIENCE_S)
    looker.stop()

    assert looker.failed is wrong


def test_a_lost_database_is_shown_and_it_goes_on_when_it_is_back() -> None:
    seen = threading.Semaphore(0)
    answers: Iterator[Glance | Unavailable] = iter(
        [quiet(), Unavailable("the server is away", "", ""), quiet(queues=[QueueNow(queue="back")])]
    )

    def ask() -> Glance:
        answer = next(answers, quiet())
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    looker = Looker(ask, 0.0, seen.release)
    notes = []
    looker.start()
    for _ in range(3):
        assert seen.acquire(timeout=PATIENCE_S)
        notes.append((looker.note, looker.latest))
    looker.stop()

    assert [bool(note) for note, _ in notes][1] is True
    assert "FR-502: the server is away" in notes[1][0]
    assert notes[1][1] is notes[0][1], "what was seen last stays"
    assert notes[2][0] == ""


def test_a_slow_look_is_followed_by_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    looker = Looker(quiet, 1.0, lambda: looker._end.set())
    waits: list[float] = []
    monkeypatch.setattr(looker._end, "wait", waits.append)
    clock = iter([0.0, 0.0, 2.0])
    monkeypatch.setattr("fencerow.operators.top.looker.time.monotonic", lambda: next(clock))

    looker._run()

    assert waits == [18.0]


def quiet(**changes: object) -> Glance:
    fields = {"now_us": NOW_US, "seconds": 0.01, "queues": [], "workers": [], "failures": []}
    return Glance(**{**fields, **changes})  # type: ignore[arg-type]


def crowd(queues: int, workers: int, failures: int) -> Glance:
    return quiet(
        queues=[
            QueueNow(queue=f"queue-{number}-ü" + "x" * 40, due=number, first_due_us=NOW_US - number)
            for number in range(queues)
        ],
        workers=[worker(number) for number in range(workers)],
        failures=[
            FailedJob(
                id=f"019ab{number:031d}",
                queue="mail",
                name="send",
                attempt=1,
                ended_at_us=NOW_US - 1_000_000,
                message="ValueError: \x1b[31mno\r\nluck " * 10,
            )
            for number in range(failures)
        ],
    )


def worker(number: int) -> WorkerRecord:
    return WorkerRecord(
        id=f"019ab{number:031d}",
        state="alive",
        name=f"worker-{number}",
        host="h",
        pid=1,
        lease_s=30.0,
        registered_at_us=NOW_US,
        renewed_at_us=NOW_US,
        lease_until_us=NOW_US + 30_000_000,
        now_us=NOW_US,
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 10), (200, 60)])
@pytest.mark.parametrize("many", [(0, 0, 0), (1, 1, 1), (3, 40, 8), (40, 3, 8), (50, 50, 8)])
def test_a_frame_keeps_to_the_terminal(size: tuple[int, int], many: tuple[int, int, int]) -> None:
    width, height = size

    lines = frame(crowd(*many), width, height, note="q ends")

    assert len(lines) <= height
    assert lines[-1] == "q ends"
    assert max(map(len, lines)) <= max(width, 80), lines
    assert not any(set("\x1b\r\n") & set(line) for line in lines)


def test_what_does_not_fit_is_counted_and_the_longest_wait_is_shown() -> None:
    lines = frame(crowd(50, 50, 8), 100, 24, note="q ends")

    (more,) = [line for line in lines if line.endswith("more queues")]
    shown = [line for line in lines if line.startswith("queue-")]
    assert len(shown) + int(more.split()[1]) == 50
    assert shown[0].startswith("queue-49")
    assert any(line.endswith("more workers") for line in lines)
