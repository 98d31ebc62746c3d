"""`fencerow schedules backfill`: the fires of a stretch of the past."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.documents import plain
from fencerow.command.options import asked, usual_options
from fencerow.command.times import exact, told_instant
from fencerow.schedules.commands import apart, entity_option, verbs
from fencerow.schedules.past import FIRES_MAX, BackfilledFire


@click.command()
@click.argument("name")
@entity_option
@click.option("--from", "start", required=True, metavar="WHEN", help="The first instant of the time.")
@click.option(
    "--to", "end", required=True, metavar="WHEN", help="Its end; a fire at that instant is left out."
)
@click.option(
    "--max",
    "at_most",
    type=click.IntRange(1, FIRES_MAX),
    default=1000,
    show_default=True,
    help="If there are more fires, make none.",
)
@click.option("--dry-run", is_flag=True, help="Only say which fires would make a job.")
@click.option("--force", is_flag=True, help="Also fires so old that nobody knows whether they made a job.")
@usual_options
@click.pass_context
def backfill(
    context: click.Context,
    name: str,
    entity: str | None,
    start: str,
    end: str,
    at_most: int,
    dry_run: bool,
    force: bool,
) -> None:
    """Make the jobs of a schedule's fires in a past time. A fire that has made one makes no other."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        fires = known.backfill(
            name,
            entity,
            start=told_instant("--from", start),
            end=told_instant("--to", end),
            at_most=at_most,
            dry_run=dry_run,
            force=force,
        )
    if asked(context).json:
        output.say_json(plain(fires))
        return
    for each in fires:
        label = f"{each.entity}: " if each.entity else ""
        output.say_text(f"{label}{exact(each.fire_us)} {_what(each, dry_run)}")
    count = sum(not each.was_made for each in fires)
    done = "would make" if dry_run else "made"
    output.say(f"{done} {count} of {len(fires)} fires")


def _what(fire: BackfilledFire, dry_run: bool) -> str:
    if fire.was_made:
        return "has a job"
    return "would make a job" if dry_run else f"made {fire.job_id}"
