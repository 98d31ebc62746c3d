"""What people see of handovers: the commands, `jobs show`, `why`, and what `doctor` finds."""

from __future__ import annotations

import json

import pytest

from fencerow.config import Config
from fencerow.core.finding import Level
from fencerow.core.model.ids import new_id
from fencerow.handovers.checks import LATE_S, examine_handovers
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_why import ask
from tests.handovers.stage import end, line, receiver
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

pytestmark = pytest.mark.usefixtures("url")


def standing(cli: Cli, *more: str) -> dict[str, str]:
    """Where each handover of a list stands, by its job."""
    return {
        each["job_id"]: each["standing"] for each in json.loads(cli("handovers", "list", *more, "--json").out)
    }


def test_a_list_says_where_each_stands(engine: AnyEngine, cli: Cli) -> None:
    taken, behind, running = line(engine, 3)
    (free,) = line(engine, 1, key="other")
    end(engine, taken, behind, free)
    ((mine,), bot) = (receiver(engine).take(), receiver(engine))
    assert mine.job_id == taken

    found = standing(cli)

    assert found[taken].startswith("taken by test, for ")
    assert found[behind].startswith(f"waits behind job {taken}, for ")
    assert (found[running], found[free]) == ("its job has not ended", "to be taken")
    assert list(standing(cli, "--key", "other")) == [free]
    assert standing(cli, "--receiver", "nobody") == {}
    bot.confirm(mine)
    assert found.keys() - standing(cli).keys() == {taken}
    assert "every handover is confirmed" in cli("handovers", "list", "--receiver", "nobody").out
    assert behind in cli("handovers").out


def test_one_is_shown_and_confirmed_by_its_id(engine: AnyEngine, cli: Cli) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    shown = cli("handovers", "show", first)
    assert shown.code == 0 and "bot" in shown.out and "to be taken" in shown.out

    confirmed, again = cli("handovers", "confirm", first), cli("handovers", "confirm", first)

    assert (confirmed.code, again.code) == (0, 0)
    assert "is confirmed" in confirmed.out and "was confirmed before" in again.out
    assert json.loads(cli("handovers", "show", first, "--json").out)["standing"] == "confirmed"
    assert receiver(engine).take() == []


@pytest.mark.parametrize("verb", ["show", "confirm"])
def test_a_job_that_is_not_handed_over_is_refused(engine: AnyEngine, cli: Cli, verb: str) -> None:
    (plain,) = jobs.submit(engine)
    for unknown in (plain, new_id()):
        answer = cli("handovers", verb, unknown)

        assert answer.code != 0 and "FR-831" in answer.err


def test_a_job_that_has_not_ended_is_not_confirmed(engine: AnyEngine, cli: Cli) -> None:
    (first,) = line(engine, 1)

    answer = cli("handovers", "confirm", first)

    assert answer.code != 0 and "FR-307" in answer.err


def test_the_job_and_why_tell_of_it(engine: AnyEngine, cli: Cli) -> None:
    (first,) = line(engine, 1)
    (plain,) = jobs.submit(engine)
    end(engine, first, plain)

    assert "to bot, key k: to be taken" in cli("jobs", "show", first).out
    assert json.loads(cli("jobs", "show", first, "--json").out)["handover"]["receiver"] == "bot"
    assert json.loads(cli("jobs", "show", plain, "--json").out)["handover"] is None
    answer = ask(engine, first)
    assert answer.summary.startswith("it ended ")
    assert answer.summary.endswith("; its end is not confirmed: receiver bot, key k: to be taken")
    receiver(engine).confirm(first)
    assert [each.holds for each in ask(engine, first).conditions if each.name == "is confirmed"] == [True]
    assert ask(engine, plain).summary.endswith(", in attempt 1")


def test_doctor_names_a_line_that_nobody_confirms(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, second = line(engine, 2)
    end(engine, first, second)
    receiver(engine).take()
    config = Config()
    assert [each.level for each in examine_handovers(engine, config)] == [Level.OK]
    clock.advance(LATE_S + 60)

    counts, stuck = examine_handovers(engine, config)

    assert counts.found == "2 not confirmed, of which 2 could be"
    assert stuck.level is Level.WARN and first in stuck.found and "taken 1 time" in stuck.found
    assert "2 of its key wait so long" in stuck.found and first in (stuck.fix or "")
    receiver(engine).confirm(first)
    receiver(engine).confirm(second)
    assert [each.level for each in examine_handovers(engine, config)] == [Level.OK]
