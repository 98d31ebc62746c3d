"""`fencerow doctor`: prints what `fencerow.doctor` finds."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import asked_app, resolved
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.core.finding import Finding, Level
from fencerow.db.errors import exits
from fencerow.db.text import amount
from fencerow.doctor.examine import HasChecks, examine

ORDER = (Level.OK, Level.INFO, Level.WARN, Level.FAIL)
COLUMNS = (Column("check"), Column("level"), Column("found", least=30, folds=True))


@click.command()
@usual_options
@click.pass_context
def doctor(context: click.Context) -> int:
    """Check everything that can be wrong with the database, its clock and its queued jobs.

    With -A also what only the application knows: a store of large payloads that its code gave it.
    """
    app: object = asked_app(asked(context))
    findings = examine(resolved(asked(context)), app.checks() if isinstance(app, HasChecks) else ())
    failed = any(each.level is Level.FAIL for each in findings)
    if asked(context).json:
        output.say_json({"ok": not failed, "findings": findings})
    else:
        _show(findings)
    return exits.FAILED if failed else exits.OK


def _show(findings: list[Finding]) -> None:
    """What is wrong stands last, where a window of 24 lines shows it, with what to do and how many there are."""
    shown = sorted(findings, key=lambda each: ORDER.index(each.level))
    output.table(COLUMNS, [(each.name, each.level.value, each.found) for each in shown])
    advice = [each for each in shown if each.fix]
    if advice:
        output.say()
        for each in advice:
            output.say_text(f"{each.name}: {each.fix}")
    output.say()
    output.say(counted(findings))


def counted(findings: list[Finding]) -> str:
    """How many things are wrong."""
    failures, warnings = (sum(each.level is level for each in findings) for level in (Level.FAIL, Level.WARN))
    told = [amount(failures, "failure")] if failures else []
    told += [amount(warnings, "warning")] if warnings else []
    return ", ".join(told) or "nothing is wrong"
