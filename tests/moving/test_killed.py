"""A small part of the campaign: workers on both sides, the move killed, each job run once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.moving.campaign.play import play


@pytest.mark.parametrize("unfenced", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_each_job_runs_once_though_the_move_is_killed_and_workers_stand_on_both_sides(
    tmp_path: Path, postgres_url: str, unfenced: bool
) -> None:
    found = play(tmp_path, postgres_url, jobs=2_000 if unfenced else 60, kills=2, seed=5, unfenced=unfenced)

    assert sum(found.kills.values()) == 2
    assert bool(found.wrong) == unfenced, found.wrong[:5]


@pytest.mark.prove
def test_without_the_closing_and_the_comparison_jobs_run_twice(tmp_path: Path, postgres_url: str) -> None:
    found = play(tmp_path, postgres_url, jobs=2_000, kills=2, seed=5, unwatched=True)

    assert any(each.startswith("2 times") for each in found.wrong)
