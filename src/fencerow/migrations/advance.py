"""The operations of a migrator: one step forward or back, each with its line of the ledger in one transaction.

The lock is taken before the ledger is read, in a statement of its own. Whoever does not get it waits outside
of any transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from fencerow.core.db.queries import Query
from fencerow.core.db.run import Param, Steps, execute, operation, whole
from fencerow.migrations.direct import Code, Raw
from fencerow.migrations.errors import MigrationFailed
from fencerow.migrations.folder import Script, Step
from fencerow.migrations.judge import left_to_revert, left_to_run
from fencerow.migrations.ledger import Ledger, Noted, make, read


@dataclass(frozen=True, slots=True)
class Aim:
    """What one migrator wants of one shard. `holder` is fresh for each run."""

    ledger: Ledger
    dialect: str
    steps: Sequence[Step]
    holder: str
    actor: str | None = None
    lease_s: float = 30.0
    lock_wait_s: float = 5.0
    out_of_order: bool = False
    baseline: int | None = None


class WaitReason(Enum):
    """Why a step cannot be taken now."""

    LOCK = "another migrator is at work"
    LEASE = "another migrator runs a step outside of a transaction"
    SERVER = "the server still runs a statement of a migrator that is gone"


@dataclass(frozen=True, slots=True)
class Advanced:
    """A step that ran, or was taken back, and is noted."""

    step: Step


@dataclass(frozen=True, slots=True)
class OutsideTransaction:
    """A step outside of a transaction, taken by this holder in this attempt. `resumed`: it was begun before."""

    step: Step
    attempt: int
    doing: str
    resumed: bool

    @property
    def script(self) -> Script:
        script = self.step.up if self.doing == "started" else self.step.down
        assert script is not None
        return script


Advance = Advanced | OutsideTransaction | WaitReason | None


@operation(writes="schema")
def apply_next(aim: Aim, *, to: int | None = None) -> Steps[Advance]:
    """Run the next missing step up to number `to`; None when there is none.

    Raises:
        MigrationEdited, MigrationMissing, MigrationLate, LedgerUnreadable, LedgerMissing: nothing was changed.
    """
    noted = yield from _locked(aim, create=True)
    if isinstance(noted, WaitReason):
        return noted
    left = left_to_run(aim.steps, noted, out_of_order=aim.out_of_order, to=to)
    if not left:
        return None
    step, begun = left[0], _begun(noted, left[0])
    if begun and (yield from _under_way(aim, step)):
        return WaitReason.SERVER
    if not step.up.in_transaction:
        return (yield from _take_apart(aim, step, "started", resumed=begun))
    if begun:  # outside of a transaction, and its file was rewritten since
        yield from execute("forget_step", version=step.version)
    yield from _run_inside(step.up)
    yield from execute(
        "note_step", version=step.version, name=step.name, checksum=step.checksum, actor=aim.actor
    )
    return Advanced(step)


@operation(writes="schema")
def revert_next(aim: Aim, to: int) -> Steps[Advance]:
    """Take the newest step above number `to` back; None when there is none.

    Raises:
        RevertRefused: some step above `to` has no way back. Looked at before the first is taken back.
        MigrationEdited, MigrationMissing, LedgerUnreadable: nothing was changed.
    """
    noted = yield from _locked(aim, create=False)
    if isinstance(noted, WaitReason):
        return noted
    left = left_to_revert(aim.steps, noted, to=to)
    if not left:
        return None
    step = left[0]
    assert step.down is not None
    begun = _begun(noted, step)
    if begun and (yield from _under_way(aim, step)):
        return WaitReason.SERVER
    if not step.down.in_transaction:
        return (yield from _take_apart(aim, step, "reverting", resumed=begun))
    yield from _run_inside(step.down)
    yield from execute("forget_step", version=step.version)
    return Advanced(step)


@operation(writes="")
def look(ledger: Ledger, dialect: str) -> Steps[tuple[list[Noted] | None, list[str]]]:
    """What the ledger says, and where there is none, the tables that are there all the same. Changes nothing."""
    noted = yield from read(ledger, dialect)
    if noted is not None:
        return noted, []
    place = f'"{ledger.schema}"' if ledger.schema is not None and dialect == "postgres" else None
    return None, [str(row[0]) for row in (yield from execute("strangers", place=place))]


@operation(alone=True, repeatable=True, writes="schema")
def renew(aim: Aim, apart: OutsideTransaction, lease_s: float) -> Steps[bool]:
    """Move the lease on, or with 0 give it up; false when it is lost."""
    rows = yield from execute(
        "renew_apart", version=apart.step.version, holder=aim.holder, attempt=apart.attempt, lease_s=lease_s
    )
    return bool(rows)


@operation(alone=True, writes="schema")
def finish(aim: Aim, apart: OutsideTransaction) -> Steps[bool]:
    """Note that a step outside of a transaction is whole, or gone; false when somebody else has taken it over."""
    of: dict[str, Param] = {"version": apart.step.version, "holder": aim.holder, "attempt": apart.attempt}
    if apart.doing == "started":
        return bool((yield from execute("finish_apart", of)))
    return bool((yield from execute("finish_revert", of)))


def mark_of(ledger: Ledger, step: Step) -> str:
    """What the statements of a step outside of a transaction begin with."""
    return f"/* fencerow {ledger.table} {step.version} */"


def session_of(ledger: Ledger, step: Step) -> str:
    """The application name of the connection on which a step runs outside of a transaction.

    The statements of a function of the user's bear no mark; this they do.
    """
    return f"fencerow step {ledger.lock & (2**64 - 1):016x} {step.version}"


def _locked(aim: Aim, *, create: bool) -> Steps[list[Noted] | WaitReason]:
    """The ledger, read under the lock."""
    yield from execute("be_impatient", lock_wait_ms=f"{max(1, round(aim.lock_wait_s * 1000))}")
    if not (yield from execute("try_ledger_lock", lock=aim.ledger.lock))[0][0]:
        return WaitReason.LOCK
    noted = yield from read(aim.ledger, aim.dialect)
    if noted is None:
        if not create:
            return []
        yield from make(aim.ledger, aim.dialect, baseline=aim.baseline)
        for step in aim.steps:
            if aim.baseline is not None and step.version <= aim.baseline:
                yield from execute(
                    "note_step",
                    version=step.version,
                    name=step.name,
                    checksum=step.checksum,
                    actor=aim.actor,
                )
        noted = (yield from read(aim.ledger, aim.dialect)) or []
    for line in noted:
        if line.lease_left_s is not None and line.lease_left_s > 0:
            return WaitReason.LEASE
    return noted


def _begun(noted: Sequence[Noted], step: Step) -> bool:
    return any(line.version == step.version and not line.whole for line in noted)


def _under_way(aim: Aim, step: Step) -> Steps[bool]:
    """Whether the server still works for somebody who began this step and may be gone."""
    rows = yield from execute(
        "statements_under_way", mark=mark_of(aim.ledger, step), session=session_of(aim.ledger, step)
    )
    return bool(rows[0][0])


def _take_apart(aim: Aim, step: Step, doing: str, *, resumed: bool) -> Steps[Advance]:
    rows = yield from execute(
        "take_apart",
        version=step.version,
        name=step.name,
        checksum=step.checksum,
        doing=doing,
        holder=aim.holder,
        lease_s=aim.lease_s,
        actor=aim.actor,
    )
    return OutsideTransaction(step, whole(rows[0][0]), doing, resumed) if rows else WaitReason.LEASE


def _run_inside(script: Script) -> Steps[None]:
    before = (yield from execute("this_transaction"))[0][0]
    if script.function is not None:
        yield Code("step", {}, None, script.file.name, script.function)
    for piece in script.pieces:
        yield Raw("step", {}, Query("step", (piece.text,), ()), script.file.name, piece.line)
    yield from execute("forget_settings")
    if (yield from execute("this_transaction"))[0][0] != before:
        raise MigrationFailed(
            f"{script.file.name} ended the transaction that it ran in",
            "what it committed stays, and is not noted: this step is half done",
            "take its effects back by hand; leave COMMIT and ROLLBACK to the migrator",
        )
