"""Words of other systems are answered with ours wherever they are written; what is near to nothing gets no guess."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from types import FunctionType
from typing import Any, cast

import pytest

import fencerow
from fencerow import App, Config, Retry
from fencerow.core.worker.ordered import ServedChange, ordering_of
from fencerow.errors import WrongCall
from fencerow.limits import Limit
from fencerow.theirs import ELSEWHERE, OURS
from fencerow.web.webhooks.endpoint import EndpointOptions, EndpointWanted, wanted_of


def fix_of(call: Callable[..., Any], word: str) -> str:
    with pytest.raises(WrongCall, match="was given") as refused:
        call(**{word: 1})
    assert refused.value.code == "FR-950"
    return refused.value.fix if refused.value.fix != "correct or remove it" else refused.value.why


@pytest.mark.parametrize(
    ("words", "write"),
    [
        ("depends_on parents chain group then", "flow.add("),
        ("on_success on_failure callback link link_error on_retry_exhausted", "job.submit_next("),
        ("retry retries max_retries", "attempts_max=, which counts the first attempt too"),
        ("max_tries max_attempts", "attempts_max="),
        ("queueing_lock unique_opts", "unique="),
        ("lock", "exclusive="),
        ("schedule_in _defer_by countdown delay", "delay_s="),
        ("_defer_until eta scheduled_at", "run_at="),
        ("_job_id task_id", "key="),
        ("_queue_name routing_key", "queue="),
        ("result_ttl failure_ttl keep_result", "retention_s="),
        ("ttl max_age _expires", "expires_s"),
        ("job_timeout time_limit", "timeout_s="),
        ("at_front", "priority="),
        ("ignore_result", "ephemeral="),
        ("rate_limit max_concurrency max_concurency", "limits="),
        ("prio", "did you mean priority?"),
        ("timout_s", "did you mean timeout_s?"),
    ],
)
def test_a_word_of_others_names_what_does_it_here(words: str, write: str, lite_app: App) -> None:
    job = lite_app.job(greet)

    for word in words.split():
        assert write in fix_of(job.using, word), word


def test_the_words_are_the_same_wherever_a_call_is_written(lite_app: App) -> None:
    job = lite_app.job(greet)
    flow, client = lite_app.flow("letters"), lite_app.client

    assert fix_of(Retry, "countdown") == "write after_s="
    assert fix_of(Config, "concurrency") == fix_of(lite_app.worker, "concurency") == "write slots="
    assert fix_of(Limit, "concurrency") == "write at_once="
    assert fix_of(client.list_jobs, "status") == fix_of(client.list_jobs, "statuss") == "write states="
    assert fix_of(flow.add, "depends_on") == "write needs="
    assert fix_of(lambda **given: lite_app.schedule(job, **given), "crontab") == "write cron="
    assert fix_of(changed, "slotz") == "did you mean slots?"
    assert fix_of(endpoint, "max_attempts") == "write attempts_max="


def changed(**given: Any) -> None:
    ordering_of("w1", cast("ServedChange", given), "ada")


def endpoint(**given: Any) -> None:
    wanted_of(EndpointWanted(url="u"), "u", cast("EndpointOptions", given))


def greet(name: str) -> None: ...


@pytest.mark.parametrize("word", ["colour", "expiry_policy", "on", "x", "shard_by", "unix"])
def test_what_is_near_to_nothing_gets_no_guess(word: str, lite_app: App) -> None:
    assert fix_of(lite_app.job(greet).using, word).startswith("it takes ")


def test_no_word_of_others_is_answered_with_a_guess(lite_app: App) -> None:
    job = lite_app.job(greet)

    for word in {*OURS, *ELSEWHERE} - {"limit"}:  # which is near to `limits`
        assert "did you mean" not in fix_of(job.using, word), word


def test_an_error_inside_of_a_call_that_fits_stays_what_it_is(lite_app: App) -> None:
    def broken() -> Any:
        yield lite_app.job(greet).call("ada")
        raise TypeError("of the caller's own")

    with pytest.raises(TypeError, match="of the caller's own"):
        lite_app.submit_many(broken())
    assert Retry(after_s=timedelta(seconds=1)).after_s == 1.0


def test_pickle_finds_each_function_that_the_package_hands_out() -> None:
    handed_out = [
        each for name in fencerow.__all__ if isinstance(each := getattr(fencerow, name), FunctionType)
    ]

    assert fencerow.is_retryable in handed_out
    for each in handed_out:
        assert pickle.loads(pickle.dumps(each)) is each
