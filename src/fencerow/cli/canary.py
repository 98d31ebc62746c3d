"""`fencerow canary`: measures how fast the work of a dead worker comes back, with a job and processes of its own."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import actor, resolved, working
from fencerow.command.documents import plain
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.core.client.base import ClientBase
from fencerow.core.model.person import Person, Via
from fencerow.db.errors import exits
from fencerow.db.main_loop import run_main
from fencerow.doctor.canary.sending import send
from fencerow.doctor.canary.trial import Trial
from fencerow.web.maintenance.client import MaintenanceVerbs
from fencerow.web.maintenance.refusing import refuse_canary

COLUMNS = (Column("step"), Column("after"), Column("note", folds=True))


@click.command()
@click.option(
    "--within",
    "within_s",
    type=click.FloatRange(1.0, 7200.0),
    metavar="SECONDS",
    help="How long to wait for it after the kill; by default a minute more than lease_s + sweep_s.",
)
@click.option("--reason", metavar="TEXT", help="Why; kept in the audit log.")
@usual_options
@click.pass_context
def canary(context: click.Context, within_s: float | None, reason: str | None) -> int:
    """Measure how fast the work of a dead worker comes back, and compare it with what is promised.

    A job of its own is run in a process of its own, which is killed. No other job, queue or worker is touched, and
    nothing of it is left but an entry of the audit log. It takes about lease_s + sweep_s.
    """
    wanted = asked(context)
    config = resolved(wanted)
    with working(wanted) as engine:
        refuse_canary(MaintenanceVerbs(ClientBase(engine)).get())
    person = Person(actor(config), Via.COMMAND, reason=reason)
    trial = run_main(send(config, person, within_s=within_s, tell=_say))
    if wanted.json:
        output.say_json({**plain(trial), "recovery_s": trial.recovery_s, "holds": trial.holds})
    else:
        output.table(
            COLUMNS,
            [(name, f"{(at_us - trial.sent_us) / 1e6:.1f} s", note) for name, at_us, note in trial.steps],
        )
        output.say()
        output.say_text(trial.told)
    return exits.OK if trial.holds else exits.FAILED


def _say(trial: Trial) -> None:
    """One line of what it waits for, while it goes on."""
    if trial.killed_us is not None and trial.reclaimed_us is None and trial.trouble is None:
        output.warn(f"its process is killed; it should be back within {trial.bound_s:g} s")
