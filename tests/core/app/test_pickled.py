"""A job is pickled like the function whose place it has taken, so that `multiprocessing` can be given it by name."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import pytest

from fencerow import App, contract

app = App("sqlite:////nowhere/jobs.db")


@app.job
def double(n: int) -> int:
    return n * 2


@contract
def told(n: int) -> None: ...


def test_a_job_is_pickled_by_the_place_of_its_function() -> None:
    assert pickle.loads(pickle.dumps(double)) is double
    assert pickle.loads(pickle.dumps(told)) is told
    assert copy.deepcopy([double])[0] is double


def test_a_process_of_its_own_is_given_a_job() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]


def test_a_job_that_stands_in_no_module_is_refused_as_functions_are() -> None:
    @app.job
    def local() -> None: ...

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)
