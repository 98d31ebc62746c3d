"""What was told once goes on as 0: a queue that is empty is no queue that nobody looked at."""

from __future__ import annotations

from fencerow.config import Config
from fencerow.core.store import store
from fencerow.metrics.families import database_families
from fencerow.metrics.looker import LatestLook
from fencerow.metrics.looking import MetricsSeen, look
from fencerow.metrics.page import text_of
from fencerow.metrics.settings import MetricsSettings
from fencerow.metrics.zeros import Zeros
from fencerow.operators.at_once import cancel_many
from fencerow.operators.queues import pause_queue, resume_queue
from tests.kit.jobs import AnyEngine, claim, new_job, register, submit
from tests.metrics.test_page import samples

NAMES_MAX = 3


def told(seen: MetricsSeen, zeros: Zeros) -> dict[tuple[str, ...], float]:
    """What a page says of the jobs and of what is paused."""
    found = samples(text_of(database_families(LatestLook(seen, 0.0, 0.0), NAMES_MAX, zeros)))
    return {key: value for key, value in found.items() if len(key) > 1 and "mail" in key[1:]}


def test_a_queue_that_became_empty_reads_0(engine: AnyEngine) -> None:
    settings, zeros = MetricsSettings.of(Config()), Zeros(NAMES_MAX)
    running, *others = new_job(), new_job(), new_job(delay_s=600.0)
    submit(engine, running)
    holder = register(engine)
    (claimed,) = claim(engine, holder)
    submit(engine, *others)
    engine.run(pause_queue("mail", actor="ada", reason=None))
    before = told(look(engine, settings), zeros)

    engine.run(store.succeed([store.Success(claimed.id, claimed.attempt, "1")], holder=holder))
    engine.run(cancel_many([each.id for each in others], actor=None))
    engine.run(resume_queue("mail"))
    after = told(look(engine, settings), zeros)

    assert {key[0] for key, value in before.items() if value} >= {"fencerow_jobs", "fencerow_queue_paused"}
    assert after == dict.fromkeys(before, 0.0)


def test_a_queue_that_is_gone_takes_no_name_from_one_that_is_there() -> None:
    zeros = Zeros(NAMES_MAX)
    for queue in "abcd":
        told(MetricsSeen(jobs={(queue, "due"): 1}), zeros)

    assert told(MetricsSeen(jobs={("mail", "due"): 5}), zeros)["fencerow_jobs", "mail", "due"] == 5
