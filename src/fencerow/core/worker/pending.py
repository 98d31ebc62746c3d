"""Outcomes that the database has not confirmed, and which of them one statement shall write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from fencerow.core.model.outcome import Followed, Outcome, Succeeded
from fencerow.core.store.outcomes import RULES, OutcomeRule
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.roster import Key

BATCH_BYTES_MAX = 8 * 1024 * 1024


class Pending(msgspec.Struct, eq=False, gc=False):
    """One outcome that the database has not confirmed."""

    attempt: Attempt
    # The attempt's: two of one job may be here at once, when a lost registration left the first behind.
    key: Key
    outcome: Outcome
    duration_s: float
    apart_until: float = 0.0  # monotonic: until then it waits apart

    @property
    def id(self) -> str:
        return self.attempt.claimed.id

    @property
    def rule(self) -> OutcomeRule:
        """What depends on the kind of its outcome."""
        return RULES[type(self.outcome)]


def batches(outcomes: Iterable[Pending]) -> Iterator[tuple[str, str, list[Pending]]]:
    """What one statement each shall write: its kind, the holder, and no more outcomes than it should have."""
    groups: dict[tuple[str, str], list[Pending]] = {}
    for each in outcomes:
        groups.setdefault((RULES[type(each.outcome)].kind, each.attempt.holder), []).append(each)
    for (kind, holder), group in groups.items():
        for batch in _bounded(group):
            yield kind, holder, batch


def _bounded(group: Iterable[Pending]) -> Iterator[list[Pending]]:
    """Batches below the size that one statement should have, with no job twice: the answer names ids alone."""
    batch: list[Pending] = []
    ids: set[str] = set()
    size = 0
    for each in group:
        job_id, outcome = each.attempt.claimed.id, each.outcome
        weight = len(outcome.result) if type(outcome) is Succeeded else _bytes_of(outcome)
        if batch and (size + weight > BATCH_BYTES_MAX or job_id in ids):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(each)
        ids.add(job_id)
        size += weight
    if batch:
        yield batch


def _bytes_of(outcome: Outcome) -> int:
    """How much of a statement it takes, roughly."""
    if isinstance(outcome, Followed):
        return len(outcome.result) + sum(each.job.args_bytes for each in outcome.submissions)
    return 512
