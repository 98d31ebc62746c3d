"""Decides from a history, and the database at its end, whether the promises held.

    report = check(["history/"], engine=app.engine, options=Options(effects={"pay"}))
    assert report.is_clean, report.text()

All processes that wrote to the database must have recorded, and for what needs the database it must be at
rest: the workers drained and stopped. What cannot be known (an answer that was lost, a process that was
killed) may have happened or not; a violation is reported only if neither reading is legal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fencerow.db.engine import Engine
from fencerow_proof.history.acts import History
from fencerow_proof.history.checks.affinity import check_affinity
from fencerow_proof.history.checks.cancels import check_cancel
from fencerow_proof.history.checks.effects import check_effects
from fencerow_proof.history.checks.fences import check_fences
from fencerow_proof.history.checks.keys import check_keys
from fencerow_proof.history.checks.leases import Workers, check_leases, check_workers, workers_of
from fencerow_proof.history.checks.limits import Suspects, check_claims, check_slots
from fencerow_proof.history.checks.liveness import SWEEP_S, Watch, check_liveness, watch_of
from fencerow_proof.history.checks.lost import (
    check_all_or_nothing,
    check_codes,
    check_conservation,
    check_lost,
)
from fencerow_proof.history.checks.moves import check_moves
from fencerow_proof.history.checks.order import check_order
from fencerow_proof.history.checks.turns import Turns
from fencerow_proof.history.final import Final, read_final
from fencerow_proof.history.lives import Life, Unseen, lives, unseen
from fencerow_proof.history.reading import read_history
from fencerow_proof.history.report import Report


@dataclass(frozen=True, slots=True)
class Options:
    """What the checker must be told of a run."""

    effects: Collection[str] = field(default_factory=frozenset[str])
    """Names of the jobs whose handlers write one row of `effect` inside `job.transaction()`, and in each run."""
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many jobs may run at once: by `queue:NAME`, by `fleet`, or by a limit that jobs name. Keys tell theirs."""
    drained: bool = True
    """Whether every job was given the time to end."""
    foreign: bool = False
    """Whether the database holds jobs that this history does not tell of."""
    clock_moved: bool = False
    """Whether the database's clock jumped: what compares its instants is then left out."""
    sweep_s: float | None = None
    """How often workers look for the dead; by default what the history says, else 15 s."""
    slack_s: float = 5.0
    """What recovery may take beyond lease and sweep on a busy machine."""


def check(
    paths: Iterable[str | Path], engine: Engine | None = None, options: Options | None = None
) -> Report:
    """Check the histories in these files and folders, with the database at the end if there is one.

    Raises:
        InvalidInput: a file is missing or no history.
        DatabaseError: the database cannot be read.
    """
    chosen = options or Options()
    history = read_history(paths)
    final = None if engine is None else read_final(engine, effects=bool(chosen.effects))
    return judge(history, final, chosen)


def judge(history: History, final: Final | None, options: Options) -> Report:
    """Check what was read already."""
    report = Report(history)
    workers, hidden = workers_of(history), unseen(history)
    watch = watch_of(workers, history.end_us, sweep_s=_sweep_s(history, options), slack_s=options.slack_s)
    suspects, turns = Suspects(), Turns(history, options.limits)
    for life in lives(history):
        before = len(report.violations)
        _check_life(report, life, hidden, workers, watch, final, options)
        suspects.take(life, hidden)
        turns.take(life, hidden)
        if len(report.violations) == before:
            check_order(report, life, hidden)
    suspects.check(report)
    turns.check(report)
    _check_whole(report, hidden, workers, final, options)
    report.notes += _notes(final, options)
    return report


def _check_life(
    report: Report,
    life: Life,
    hidden: Unseen,
    workers: Workers,
    watch: Watch,
    final: Final | None,
    options: Options,
) -> None:
    check_lost(report, life, hidden, final, drained=options.drained)
    check_fences(report, life, hidden, final)
    check_leases(report, life, hidden, workers, final, clock_moved=options.clock_moved)
    check_effects(report, life, final, options.effects)
    check_cancel(report, life, hidden, final)
    check_affinity(report, life, hidden)
    if not options.clock_moved:
        check_liveness(report, life, workers, watch)


def _check_whole(
    report: Report, hidden: Unseen, workers: Workers, final: Final | None, options: Options
) -> None:
    history = report.history
    check_workers(report, workers, clock_moved=options.clock_moved)
    check_keys(report, history, final)
    check_claims(report, history)
    check_slots(report, history, workers)
    check_codes(report, history)
    if final is not None:
        check_moves(report, final)
        check_all_or_nothing(report, history, final)
        check_conservation(report, history, hidden, final, foreign=options.foreign)


def _sweep_s(history: History, options: Options) -> float:
    if options.sweep_s is not None:
        return options.sweep_s
    return max((source.sweep_s for source in history.sources if source.sweep_s is not None), default=SWEEP_S)


def _notes(final: Final | None, options: Options) -> list[str]:
    notes = []
    if final is None:
        notes.append("no database was given: I1, I5, I15 and I17 are decided in part or not at all")
    if options.clock_moved:
        notes.append("the database's clock was moved: its instants were not compared, I9 was left out")
    return notes
