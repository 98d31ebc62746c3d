"""What the audit of a code base with Celery finds, and what it passes over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencerow.moving.celery.audit import audit
from fencerow.moving.celery.note import Audit, NoteLevel
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli = command_line._clean, command_line.cli  # fixtures

CODE = """
from celery import Celery, chain, chord, group, shared_task
from celery.result import AsyncResult
from celery.schedules import crontab
from django.db import transaction
import time

app = Celery("shop")
app.conf.task_serializer = "pickle"
app.conf.beat_schedule = {
    "nightly": {"task": "shop.clean", "schedule": crontab(minute=0, hour=3, day_of_week="mon")},
    "often": {"task": "shop.check", "schedule": 30.0},
    "odd": {"task": "shop.odd", "schedule": solar("sunset")},
}

@app.task(bind=True, max_retries=None, acks_late=True, rate_limit="10/m")
def send(self, to):
    time.sleep(3)
    try:
        raise self.retry(countdown=5)
    finally:
        self.update_state(state="x")

@shared_task(autoretry_for=(OSError,), retry_backoff=True, time_limit=30, queue="mail", oddity=1)
def check(order):
    answer = send.delay(order)
    return answer.get()

def buy(order):
    with transaction.atomic():
        send.delay(order)
        transaction.on_commit(lambda: check.delay(order))
    send.apply_async((order,), countdown=2 * 3600, link=check.s())
    chord([check.s(1), check.si(2)])(send.s())
    return AsyncResult("x").get()

@app.on_after_configure.connect
def setup(sender, **_):
    sender.add_periodic_task(crontab(hour=7), send.s("a"))

def innocent(app, thing):
    thing.delay(3)
    thing.get("x")
"""


@pytest.fixture
def found(tmp_path: Path) -> Audit:
    (tmp_path / "shop.py").write_text(CODE)
    return audit(tmp_path)


def line_of(text: str) -> int:
    (number,) = [at for at, line in enumerate(CODE.splitlines(), 1) if text in line]
    return number


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('task_serializer = "pickle"', "pickle"),
        ("max_retries=None", "for ever"),
        ("def check", "acknowledged before"),
        ("return answer.get()", "waits for another"),
        ("        send.delay(order)", "before the commit"),
        ("on_commit(lambda", "after the commit"),
        ("countdown=2 * 3600", "visibility timeout"),
    ],
)
def test_what_is_dangerous_today_is_told_with_its_line(found: Audit, text: str, word: str) -> None:
    told = [
        each.means for each in found.notes if each.level is NoteLevel.DANGER and each.line == line_of(text)
    ]
    assert any(word in each for each in told), told


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('"nightly"', "cron='0 3 * * mon'"),
        ('"often"', "interval_s=30"),
        ('"odd"', "only a run shows"),
        ("add_periodic_task", "cron='* 7 * * *'"),
        ("rate_limit", "a limit"),
        ("oddity=1", "base class"),
        ("self.retry", "raise Retry"),
        ("self.update_state", "job.progress"),
        ("    time.sleep(3)", "Snooze"),
        ("chord(", "a flow"),
        ("check.si(2)", "call(...)"),
        ('return AsyncResult("x")', "handle"),
        ('queue="mail"', "queue="),
    ],
)
def test_what_becomes_what_is_told_with_its_line(found: Audit, text: str, word: str) -> None:
    told = [each.means for each in found.notes if each.line == line_of(text)]
    assert any(word in each for each in told), told


def test_what_only_looks_alike_is_left_alone(found: Audit) -> None:
    assert not [each for each in found.notes if each.line > line_of("def innocent") - 1]
    assert found.tasks == 2  # and not `thing`


def test_a_setting_that_acknowledges_late_counts_for_all_and_no_password_is_shown(tmp_path: Path) -> None:
    settings = "CELERY_TASK_ACKS_LATE = True\nCELERY_BROKER_URL = 'redis://:hush@cache/0'\n"
    (tmp_path / "settings.py").write_text(settings)
    (tmp_path / "tasks.py").write_text("from shop.worker import app\n@app.task\ndef check(): ...\n")

    found = audit(tmp_path)

    assert found.tasks == 1
    assert not [each for each in found.notes if each.level is NoteLevel.DANGER]
    assert "hush" not in str(found)


def test_odd_files_are_told_and_passed_over_and_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import celery\ndef (")
    (tmp_path / "deep.py").write_text("celery = " + "(" * 5000 + ")" * 5000)
    (tmp_path / "bytes.py").write_bytes(b"# -*- coding: utf-8 -*-\ncelery = '\xff'")
    (tmp_path / "runs.py").write_text("import celery\nraise SystemExit('it was run')")
    (tmp_path / "link.py").symlink_to("/dev/zero")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "theirs.py").write_text("import celery")

    found = audit(tmp_path)

    assert {each.file for each in found.passed} == {"broken.py", "deep.py", "bytes.py"}
    assert found.files == 1


def test_a_code_base_without_end_is_read_to_a_bound_and_that_is_told(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.py").write_text("x = 1")

    found = audit(tmp_path, files_max=3)

    assert found.files == 3
    assert found.stopped is not None


def test_the_command_says_it_for_people_and_for_programs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)

    assert "Dangerous as it runs today" in cli("audit-celery", str(tmp_path)).out
    told = json.loads(cli("audit-celery", str(tmp_path), "--json").out)
    assert {each["level"] for each in told["notes"]} == {"danger", "person", "becomes"}
    assert "pass" not in cli("audit-celery", str(tmp_path / "shop.py"), "--json").err
