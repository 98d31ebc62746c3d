"""The log of `fencerow worker` as its reader has it: of real processes, also where the user configured logging."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

import fencerow
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import command, url_of
from tests.kit.jobs import new_job, submit
from tests.kit.pace import PATIENCE_S

AnyEngine = SqliteEngine | PostgresEngine
TALK = """
import logging
{configure}
from collections.abc import Sequence
from fencerow import App, Job
from fencerow.batches import BatchItem
from fencerow.events import Event, consumer
app = App()
log = logging.getLogger("myapp")

@app.job
async def talk(job: Job, word: str) -> None:
    log.info("my info %s", word); log.warning("my warning"); print("printed"); await job.log("job line")

@app.job(process=True)
def apart(job: Job) -> None:
    log.info("in the child"); print("printed there"); job.log("child line")

@app.batch_job(batch_max=2)
async def pile(items: Sequence[BatchItem[int, None]]) -> None: ...

@consumer(app, group="billing", topics=["order.*"])
async def bill(event: Event) -> None: ...

@app.job(attempts_max=1)
async def broken() -> None:
    log.info("of what use?", "nobody knows")
    raise ValueError("no postgresql://me:hunter2@host/db\\n12:00:00.000 INFO forged\\x1b[2J")
"""
BASIC = "logging.basicConfig(level='INFO', format='OWN %(levelname)s %(name)s %(message)s <%(job)s>')"
DICT = """
import fencerow.logs, logging.config
logging.config.dictConfig({  # disables the loggers that are there, which is how it comes
    "version": 1,
    "filters": {"job": {"()": "fencerow.logs.LogFields"}},
    "formatters": {"own": {"format": "OWN %(name)s %(message)s <%(job)s %(process)d>"}},
    "handlers": {
        "own": {"class": "logging.FileHandler", "filename": "own.log", "formatter": "own", "filters": ["job"]}
    },
    "root": {"level": "INFO", "handlers": ["own"]},
})
"""


def ran(engine: AnyEngine, configure: str, names: str, *words: str) -> tuple[list[str], str, str]:
    """The ids of jobs of these names, and what a worker printed and logged while it ran them."""
    Path("talker.py").write_text(TALK.replace("{configure}", configure))
    arguments = {"talk": '{"word":"a"}'}
    jobs = [(name, arguments.get(name, "{}")) for name in names.split()]
    ids = submit(engine, *[new_job(args, name=name, queue="default", attempts_max=1) for name, args in jobs])
    process = command("worker", "-A", "talker:app", "--drain", *words)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return ids, out, err


def test_all_that_a_handler_says_is_seen_with_its_job(
    url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", url.replace("://app@", "://app:hunter2@"))

    (talk, apart, broken), out, err = ran(engine, "", "talk apart broken")

    assert sorted(out.splitlines()) == ["printed", "printed there"]
    heard = [line.partition(" ")[2].strip() for line in err.splitlines()]
    for line in (
        f"INFO     myapp: my info a  job=talk job_id={talk} attempt=1",
        f"WARNING  myapp: my warning  job=talk job_id={talk} attempt=1",
        f"INFO     job line  job=talk job_id={talk} attempt=1",
        f"INFO     myapp: in the child  job=apart job_id={apart} attempt=1",
        f"INFO     child line  job=apart job_id={apart} attempt=1",
        f"INFO     job {broken} (broken) attempt 1 started, queue default",
    ):
        assert heard.count(line) == 1, err
    assert f"({apart}) attempt 1 started in child process" in err.replace(f"{apart} (apart)", f"({apart})")
    assert "its arguments do not fit" in err
    is_lite = isinstance(engine, SqliteEngine)
    server, where = ("SQLite 3", url.removeprefix("sqlite:///")) if is_lite else ("PostgreSQL 1", "app:***@")
    assert f"fencerow {fencerow.__version__}, Python {platform.python_version()}, {server}" in err
    facts = dict(line.split(maxsplit=1) for line in err.splitlines() if line.startswith("    "))
    assert (facts["queues"], facts["jobs"], facts["batches"]) == (
        "default (10 slots)",
        "broken, talk",
        "pile",
    )
    assert facts["and"].endswith("consumers billing (order.*)") and facts["processes"] == "apart"
    assert where in facts["database"]
    assert "hunter2" not in err and "me:***@host" in err
    assert not [line for line in err.splitlines() if line.startswith("12:00:00.000 INFO forged")]
    assert "\x1b" not in err


def test_json_has_what_a_line_carries_as_fields(lite: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))

    (talk, broken), _, err = ran(lite, "", "talk broken", "--log-format", "json")

    events = [json.loads(line) for line in err.splitlines()]
    assert {event["job_id"] for event in events if event["logger"] == "myapp"} == {talk, broken}
    (failed,) = [event for event in events if event["level"] == "error"]
    named = ("job_id", "job", "attempt", "queue", "outcome", "code", "error")
    assert [failed[name] for name in named] == [
        *(broken, "broken", 1, "default", "failed"),
        *("permanent_error", "ValueError"),
    ]
    assert 0 <= failed["duration_s"] < PATIENCE_S
    assert "in broken" in failed["traceback"] and "src/fencerow/" not in failed["traceback"]
    assert "hunter2" not in err and "\x1b" not in err


@pytest.mark.prove  # the next one does it with a configuration that also disables loggers
def test_an_application_that_configured_logging_keeps_it(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))

    (talk, _), _, err = ran(lite, BASIC, "talk apart")

    own = [line for line in err.splitlines() if line.startswith("OWN ")]
    assert "OWN INFO myapp my info a <talk>" in own
    assert own.count("OWN INFO myapp in the child <apart>") == 1
    assert f"OWN INFO fencerow.job job {talk} (talk) attempt 1 started, queue default <talk>" in own
    assert " INFO     " not in err, "no handler of ours beside it"


def test_a_configuration_that_disables_loggers_does_not_silence_the_worker(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))

    (talk, _), _, err = ran(lite, DICT, "talk apart")

    own = Path("own.log").read_text().splitlines()
    assert err == ""
    assert any(f"job {talk} (talk) attempt 1 succeeded" in line for line in own)
    (child,) = [line for line in own if "in the child" in line]
    (mine,) = [line for line in own if "my info" in line]
    assert child.rpartition(" ")[2] == mine.rpartition(" ")[2], "one process writes the file"


def test_a_level_above_info_leaves_warnings(lite: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))
    monkeypatch.setenv("FENCEROW_LOG_LEVEL", "warning")

    _, _, err = ran(lite, "", "talk broken")

    events = [line for line in err.splitlines() if not line.startswith(" ")]
    assert {line.split()[1] for line in events} == {"WARNING", "ERROR"}
