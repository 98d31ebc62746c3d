"""I18 turns are kept: of no exclusive key and under no limit run more attempts at once than there may be.

An attempt is there from the start of its handler to its end, by the one clock of the machine. It counts for as long as
the job was its own for certain: a worker that was stopped beyond its lease may run on beside the next attempt, as
everywhere. A strict job has its turn from its first attempt on, until it ends or waits at its gate again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from fencerow_proof.history.acts import NEVER, Act, History
from fencerow_proof.history.checks.limits import Held, exceeded
from fencerow_proof.history.lives import FINISHES, Life, Unseen
from fencerow_proof.history.report import Report

FLEET, QUEUE = "fleet", "queue:"
# What takes a turn from a job that does not run, or may have done so.
GIVES_UP = frozenset({"change", "cancel_idle", "expire", "disown", "revive", "take_turns_back"})


@dataclass(frozen=True, slots=True)
class Needs:
    """The turns that one job needs: by the name of the key or limit, how many there may be at once."""

    turns: Mapping[str, int]
    strict: bool


class Turns:
    """Collects who had a turn when. `limits` are those of queues, of the fleet, and those that jobs name."""

    def __init__(self, history: History, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._last_us = _last_lines(history)
        self._by_name: dict[str, list[Held]] = {}

    def take(self, life: Life, hidden: Unseen) -> None:
        needs = self._needs(life)
        if not needs.turns:
            return
        spans = list(self._spans(life, hidden))
        turned = list(_without_gaps(life, spans)) if needs.strict else spans
        for name, beside in needs.turns.items():
            held = spans if _counts_runs(name) else turned
            self._by_name.setdefault(name, []).extend(replace(span, beside=beside) for span in held)

    def check(self, report: Report) -> None:
        for name, spans in self._by_name.items():
            report.looked["I18"] += len(spans)
            acts = exceeded(spans, NEVER)
            if acts:
                report.add("I18", f"{len(acts)} ran at once under {name}", acts[0].job, acts)

    def _needs(self, life: Life) -> Needs:
        told = next((act for act in life.acts if act.verb == "submit" and act.possible), None)
        if told is None:
            return Needs({}, strict=False)
        named = (FLEET, f"{QUEUE}{told.queue}", *(told.limits or ()))
        turns = {name: self._limits[name] for name in named if name in self._limits}
        if told.exclusive is not None:
            turns[f"the key {told.exclusive}"] = told.exclusive_at_once or 1
        return Needs(turns, told.strict)

    def _spans(self, life: Life, hidden: Unseen) -> Iterator[Held]:
        """When each attempt ran, as far as the job was its own."""
        for run in life.possible("run"):
            until_us = min(
                run.end_us if run.happened else self._last_us[run.op[0]], _own_until(life, run, hidden)
            )
            yield Held(run.start_us, until_us, run)


def _counts_runs(name: str) -> bool:
    """Whether this limit bounds the claims, so that who waits between two attempts does not count."""
    return name == FLEET or name.startswith(QUEUE)


def _own_until(life: Life, run: Act, hidden: Unseen) -> int:
    """The earliest instant at which somebody may have ended this attempt."""
    attempt = life.attempts.get(run.attempt or 0)
    if attempt is None:
        return run.start_us
    until_us = min((act.start_us for act in (*attempt.endings, *attempt.maybe_ended)), default=NEVER)
    if any(act.verb in FINISHES for act in attempt.endings):
        return until_us  # it ended under its fence, so nobody had taken it
    taking = hidden.taking_of(run.holder, NEVER)
    return until_us if taking is None else min(until_us, taking.start_us)


def _without_gaps(life: Life, spans: list[Held]) -> Iterator[Held]:
    """Those of a strict job: it keeps its turn between two attempts, unless something may have taken it."""
    for span, following in zip_longest(spans, spans[1:]):
        if following is None or _gives_up(life, span.from_us, following.from_us):
            yield span
        else:
            yield replace(span, until_us=max(span.until_us, following.from_us))


def _gives_up(life: Life, from_us: int, until_us: int) -> bool:
    return any(
        act.possible and (act.verb in GIVES_UP or act.state == "waiting")
        for act in life.acts
        if from_us <= act.start_us <= until_us
    )


def _last_lines(history: History) -> dict[int, int]:
    """When each process wrote the last line that there is: until then it lived."""
    found = dict.fromkeys(range(len(history.sources)), 0)
    for acts in (history.others, *history.by_job.values()):
        for act in acts:
            at_us = act.end_us if act.end_us < NEVER else act.start_us
            found[act.op[0]] = max(found[act.op[0]], at_us)
    return found
