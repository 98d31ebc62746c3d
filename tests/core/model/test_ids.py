"""Ids: unique and in order, whatever threads and forks do."""

from __future__ import annotations

import multiprocessing
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencerow.core.model import ids
from fencerow.core.model.ids import new_id, new_ids, parse_id
from fencerow.db import forks
from fencerow.errors import InvalidInput
from tests.kit.pace import PATIENCE_S


def test_an_id_is_a_canonical_uuid_of_version_7() -> None:
    made = new_id()

    assert str(uuid.UUID(made)) == made
    assert uuid.UUID(made).version == 7


def test_ids_come_in_order() -> None:
    made = [new_id() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_of_threads_are_distinct_and_each_thread_sees_them_in_order() -> None:
    with ThreadPoolExecutor(8) as pool:
        lists = list(pool.map(lambda _: [new_id() for _ in range(3_000)], range(8)))

    assert all(made == sorted(made) for made in lists)
    assert len({each for made in lists for each in made}) == 24_000


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="there is no fork here")
def test_forked_processes_make_distinct_ids() -> None:
    new_id()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    queue = context.Queue()
    children = [context.Process(target=_make, args=(barrier, queue)) for _ in range(4)]
    for child in children:
        child.start()
    lists = [queue.get(timeout=PATIENCE_S) for _ in children]
    for child in children:
        child.join()

    tails = [each[-8:] for made in lists for each in made[:1]]
    assert len({each for made in lists for each in made}) == 4 * 2_000
    assert len(set(tails)) == 4
    assert all(made == sorted(made) for made in lists)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the standard library asks the system")
def test_a_process_of_which_python_was_not_told_seeds_its_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[None] = []
    new_id()
    monkeypatch.setattr("uuid_utils.reseed_rng", lambda: seeded.append(None))
    monkeypatch.setattr(forks, "_page", forks.EMPTY)
    monkeypatch.setattr(forks, "process", lambda: (0, -1))
    new_id(), new_id()
    assert len(seeded) == 1


def _make(barrier: object, queue: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    queue.put([new_id() for _ in range(2_000)])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "0190B2C4-7F3A-7C21-9D5E-3F6A1B2C4D5E",
        "0190b2c47f3a7c219d5e3f6a1b2c4d5e",
        " 0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e\n",
    ],
)
def test_an_id_is_brought_to_its_canonical_form(text: str) -> None:
    assert parse_id(text) == "0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e"


@pytest.mark.parametrize(
    "text", ["", "x", "0190b2c4", "{0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e}", "٠" * 32, None, 7, "a" * 9_999]
)
def test_what_is_no_id_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_id(text)

    assert len(str(caught.value)) < 500


def test_ids_of_a_batch_come_in_order_between_those_before_and_after() -> None:
    before, batch, after = new_id(), new_ids(5_000), new_id()

    assert [before, *batch, after] == sorted({before, *batch, after})
    assert {parse_id(each) for each in batch} == set(batch)
    assert {each[14] for each in batch} == {"7"}


def test_a_batch_never_carries_into_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "new_id", lambda: "0190b2c4-7f3a-7c21-9d5e-3f6affffffff")

    assert new_ids(2) == ["0190b2c4-7f3a-7c21-9d5e-3f6a7fffffff", "0190b2c4-7f3a-7c21-9d5e-3f6a80000000"]
