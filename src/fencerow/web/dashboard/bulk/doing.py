"""A press of a bulk action: portions of jobs are moved until a time is over, and what became of them is counted.

Nothing of it is stored. What is left to do is what still matches below the last job that was looked at. So whoever
closes the page, or dies, leaves jobs that were moved and jobs that were not, and none between. What a second press
finds was changed by the first one after the preview, so it is left.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fencerow.client import Client
from fencerow.core.errors import Busy, FencerowError, IllegalMove, InvalidInput, JobNotFound
from fencerow.db.run import ask
from fencerow.db.text import amount, shortened
from fencerow.operators.finding import listing
from fencerow.operators.many import BATCH, JobDone, ManyMove, moving
from fencerow.web.dashboard.bulk.counting import ChosenJob, chosen_jobs
from fencerow.web.dashboard.bulk.meaning import Meant, is_touched, is_touched_record

PRESS_S = 5.0  # then it is told how far it is, and goes on with the next press
KINDS_MAX = 12
SINCE = "came, ended or were revived since the preview"
# What the verbs call what became of a job, as people read it.
TOLD = {"queued": "revived", "deleted": "removed", "as it was": "so already"}


@dataclass(slots=True)
class PressTally:
    """How many jobs were moved, by what became of them, and left, by why."""

    done: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    @property
    def jobs(self) -> int:
        """All that were looked at."""
        return sum(self.done.values()) + sum(self.left.values())

    def add(self, outcomes: Sequence[JobDone]) -> None:
        """Count what became of jobs."""
        for each in outcomes:
            if each.error is None:
                _count(self.done, TOLD.get(each.outcome, each.outcome))
            else:
                _count(self.left, _why(each.error))

    def leave(self, why: str, jobs: int) -> None:
        """Count jobs that are left."""
        if jobs:
            _count(self.left, why, jobs)

    def words(self) -> str:
        """`9,997 cancelled, 3 asked to stop; 2 left: 2 were gone`."""
        done = ", ".join(f"{jobs:,} {what}" for what, jobs in self.done.items()) or "none was changed"
        if not self.left:
            return done
        return f"{done}; {sum(self.left.values()):,} left: " + ", ".join(
            f"{jobs:,} {why}" for why, jobs in self.left.items()
        )


@dataclass(slots=True)
class PressProgress:
    """How far a press came. `below`: only jobs below this id are still to be looked at; None: all were."""

    tally: PressTally
    below: str | None


async def press(
    client: Client, meant: Meant, move: ManyMove, *, at_us: int, below: str | None, tally: PressTally
) -> PressProgress:
    """Move portions until the time is over. What was done stays done, whatever ends it.

    Raises:
        FencerowError: the database could not be asked; the error tells how far it came.
    """
    try:
        if meant.ids:
            await _of_choice(client, meant, move, at_us, tally)
            return PressProgress(tally, None)
        return await _of_search(client, meant, move, at_us, below, tally)
    except FencerowError as error:
        if tally.jobs:
            error.why = f"{error.why}; until then: {tally.words()}"
        raise


async def _of_choice(client: Client, meant: Meant, move: ManyMove, at_us: int, tally: PressTally) -> None:
    found = await client.arun(ask(chosen_jobs(meant.ids)))
    tally.leave("were gone", len(meant.ids) - len(found))
    kept = [each for each in found if not _is_later(each, at_us)]
    tally.leave(SINCE, len(found) - len(kept))
    await _moved(client, [each.id for each in kept], move, tally)


async def _of_search(
    client: Client, meant: Meant, move: ManyMove, at_us: int, below: str | None, tally: PressTally
) -> PressProgress:
    until = time.monotonic() + PRESS_S
    while meant.states:
        page = await client.arun(listing(meant.chosen(at_us, below), BATCH))
        kept = [each for each in page if not is_touched_record(each, at_us)]
        await _moved(client, [each.id for each in kept], move, tally)
        if len(page) < BATCH:
            break
        below = page[-1].id
        if time.monotonic() >= until:
            return PressProgress(tally, below)
    return PressProgress(tally, None)


async def _moved(client: Client, ids: Sequence[str], move: ManyMove, tally: PressTally) -> None:
    done: list[JobDone] = []
    try:
        if ids:
            await client.arun(moving(ids, move, done))
    finally:
        tally.add(done)


def _is_later(job: ChosenJob, at_us: int) -> bool:
    return is_touched(job.submitted_at_us, job.revived_at_us, job.ended_at_us, at_us)


def _why(error: FencerowError) -> str:
    match error:
        case IllegalMove() if error.state:
            return f"were {error.state}"
        case IllegalMove():
            return "were changed by others meanwhile"
        case JobNotFound():
            return "were gone"
        case Busy():
            return "were locked by others"
        case _:
            return f"were refused ({error.code}: {shortened(error.why or type(error).__name__, 60)})"


def _count(counts: dict[str, int], what: str, jobs: int = 1) -> None:
    what = what if what in counts or len(counts) < KINDS_MAX else "for other reasons"
    counts[what] = counts.get(what, 0) + jobs


def packed(tally: PressTally) -> str:
    """As the form of the next press carries it. It is told to who presses, and to nobody else."""
    return base64.urlsafe_b64encode(msgspec.json.encode([tally.done, tally.left])).decode().rstrip("=")


def unpacked(text: str) -> PressTally:
    """What the press before has counted; nothing if it cannot be read."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        done, left = msgspec.json.decode(raw, type=tuple[Mapping[str, int], Mapping[str, int]])
    except (ValueError, msgspec.DecodeError):
        return PressTally()
    fits = all(len(each) <= 100 and jobs > 0 for counts in (done, left) for each, jobs in counts.items())
    return (
        PressTally(dict(done), dict(left))
        if fits and len(done) + len(left) <= 2 * KINDS_MAX + 2
        else PressTally()
    )


def compared(tally: PressTally, expected: int | None) -> str:
    """What differs from the preview, in a sentence; nothing if it counted no whole number."""
    missing = 0 if expected is None else expected - tally.jobs
    if missing <= 0:
        return ""
    return f" {amount(missing, 'job')} of the preview no longer matched."


def check_move(meant: Meant, actor: str | None, reason: str, at_us: int) -> ManyMove:
    """The move that is asked for, bound by the instant of the preview.

    Raises:
        InvalidInput: it has no reason, or its value cannot be used.
    """
    if not reason:
        raise InvalidInput(
            "no reason was given", "a bulk action is kept with one", "say why, and press again"
        )
    return meant.verb.move(actor, reason, meant.value, at_us)
