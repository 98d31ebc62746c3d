"""`fencerow workers`: who is registered and what they hold, and changing them while they run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.options import CommandOptions, asked, usual_options, utc_option
from fencerow.command.queues import named_queue
from fencerow.command.times import Times, span
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import FencerowError, InvalidInput, OrderRefused, WorkerGone, WorkerNotFound
from fencerow.core.model.state import WorkerState
from fencerow.core.model.wanted import LEAVE_S_MAX, SLOTS_MAX
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store.orders import Order
from fencerow.db.errors import exits
from fencerow.db.text import check_text
from fencerow.operators.list_workers import list_options, list_workers
from fencerow.operators.reclaim_command import reclaim
from fencerow.operators.show_worker import show_worker, shown_slot_groups
from fencerow.operators.workers import Workers

F = TypeVar("F", bound=Callable[..., Any])
Once = Callable[[Workers, str], Order]

REASON_MAX = 500
LOOK_S = 0.1


@click.group(invoke_without_command=True)
@list_options
@click.pass_context
def workers(context: click.Context, /, **options: Any) -> None:
    """List worker processes, look at one, and change them while they run. Without a verb: list.

    WORKER is an id or its beginning, a name, a pattern of names ('mail-*') or a host (host:db1, 'host:db*').
    """
    if context.invoked_subcommand is None:
        list_workers(asked(context), **options)


@workers.command("list")
@list_options
@click.pass_context
def list_(context: click.Context, /, **options: Any) -> None:
    """List the worker processes that are alive, the newest first: what they run, hold and serve.

    `busy` is what the worker said at its last renewal: jobs that run, of its slots. `held` is what the database says:
    jobs that it claimed and has not written the outcome of. They run, wait there for a slot, or have just ended.
    """
    list_workers(asked(context), **options)


@workers.command()
@click.argument("worker")
@click.option("--jobs", type=click.IntRange(0, 10_000), default=50, show_default=True, help="Jobs shown.")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, worker: str, jobs: int) -> None:
    """Show a worker: its order, what it does now, and each job that it holds."""
    with working(asked(context)) as engine:
        found = Workers(ClientBase(engine)).inspect(worker, jobs_max=jobs)
    if asked(context).json:
        output.say_json(found)
    else:
        show_worker(found, Times(found.worker.now_us, asked(context).utc))


def order_options(command: F) -> F:
    """The workers, --reason and --wait."""
    for option in reversed(
        (
            click.argument("which", metavar="WORKER...", nargs=-1, required=True),
            click.option("--reason", metavar="TEXT", help="Why; shown by `workers show`."),
            click.option(
                "--wait",
                "wait_s",
                metavar="SECONDS",
                type=click.FloatRange(0, 86_400),
                default=0.0,
                help="Wait until the workers have carried it out, at most so long.",
            ),
            usual_options,
        )
    ):
        command = option(command)
    return command


@workers.command("set")
@click.option(
    "--slots",
    type=click.IntRange(1, SLOTS_MAX),
    help="How many slots the queues share that have none of their own.",
)
@click.option(
    "-Q",
    "--queue",
    "queues",
    metavar="NAME[:SLOTS]",
    multiple=True,
    help="Serve this queue; may be repeated.",
)
@click.option("--remove", metavar="NAME", multiple=True, help="Stop serving this queue; may be repeated.")
@click.option("--version", type=click.IntRange(0), help="Only if the worker's order still has this version.")
@order_options
@click.pass_context
def set_(
    context: click.Context,
    /,
    slots: int | None,
    queues: tuple[str, ...],
    remove: tuple[str, ...],
    version: int | None,
    **options: Any,
) -> int:
    """Change slots and queues. Running jobs go on; jobs that waited for a slot of a removed queue are released."""
    if slots is None and not queues and not remove:
        raise InvalidInput(
            "nothing to set was given", "--slots, -Q or --remove is expected", "for example --slots 20"
        )
    served = dict(_queue(text) for text in queues)

    def once(workers: Workers, holder: str) -> Order:
        return workers.change(
            holder, slots=slots, queues=served, remove=remove, reason=options["reason"], version=version
        )

    return _order(asked(context), once, **options)


@workers.command()
@order_options
@click.pass_context
def pause(context: click.Context, /, **options: Any) -> int:
    """Stop claiming until `resume`. Running jobs go on; jobs that waited for a slot are released."""
    return _order(asked(context), _pausing(True, options), **options)


@workers.command()
@order_options
@click.pass_context
def resume(context: click.Context, /, **options: Any) -> int:
    """Let paused workers claim jobs again."""
    return _order(asked(context), _pausing(False, options), **options)


@workers.command()
@click.option(
    "--within",
    "within_s",
    metavar="SECONDS",
    type=click.FloatRange(0, LEAVE_S_MAX),
    help="Release jobs that still run then; by default the longest timeout of its jobs and a margin.",
)
@click.option("--now", is_flag=True, help="Release the running jobs at once.")
@order_options
@click.pass_context
def drain(context: click.Context, /, within_s: float | None, now: bool, **options: Any) -> int:
    """Finish the running jobs, then end. It cannot be taken back; a second drain can only shorten the time."""
    if now and within_s is not None:
        raise InvalidInput("both --within and --now were given", "one of them is meant", "leave one out")

    def once(workers: Workers, holder: str) -> Order:
        limit_s = 0.0 if now else within_s
        return workers.drain(holder, within_s=limit_s, reason=options["reason"])

    return _order(asked(context), once, ends=True, **options)


workers.add_command(reclaim)


def _pausing(paused: bool, options: dict[str, Any]) -> Once:
    return lambda workers, holder: workers.change(holder, paused=paused, reason=options["reason"])


def _queue(text: str) -> tuple[str, int | None]:
    name, number = named_queue(text)
    if number is None:
        return name, None
    if not name or not (number.isascii() and number.isdigit()):
        raise InvalidInput(
            f"-Q {ascii(text)[1:-1][:100]} cannot be used",
            "a queue, or a queue and its own slots",
            r"write -Q mail:5; a colon in a name is written \:",
        )
    return name, int(number)


def _order(
    asked: CommandOptions,
    once: Once,
    *,
    which: tuple[str, ...],
    reason: str | None,
    wait_s: float,
    ends: bool = False,
) -> int:
    """Order it from each worker that is meant; those that refuse are reported, the others go on."""
    if reason is not None:
        check_text(reason, "--reason", REASON_MAX)
    with working(asked) as engine:
        workers = Workers(acting(engine, asked))
        meant = {worker.id: worker for each in which for worker in workers.find(each)}
        orders, refused = _ordered(workers, once, list(meant))
        engine.flush(1.0)
        late = _awaited(workers, orders, time.monotonic() + wait_s, ends=ends) if wait_s else []
    if asked.json:
        output.say_json(
            {"orders": orders, "not_yet": late, "refused": {key: e.code for key, e in refused.items()}}
        )
    else:
        for order in orders:
            output.say_text(_told(order, meant[order.holder]))
    for error in refused.values():
        output.report(error)
    if late:
        output.warn(
            f"{len(late)} had not carried it out within {wait_s:g} s; `workers show` shows the present state"
        )
    return exits.FAILED if refused or late else exits.OK


def _ordered(
    workers: Workers, once: Once, holders: list[str]
) -> tuple[list[Order], dict[str, FencerowError]]:
    orders: list[Order] = []
    refused: dict[str, FencerowError] = {}
    for holder in holders:
        try:
            orders.append(once(workers, holder))
        except (OrderRefused, WorkerGone, WorkerNotFound, InvalidInput) as error:
            if len(holders) == 1:
                raise
            # One that others changed meanwhile must not keep the rest from being done.
            refused[holder] = error
    return orders, refused


def _awaited(workers: Workers, orders: list[Order], until: float, *, ends: bool) -> list[str]:
    """Those that have not said in time that they carried it out."""
    left = {order.holder: order for order in orders}
    while left:
        for holder, order in tuple(left.items()):
            if _is_done(workers.inspect(holder, jobs_max=1).worker, order, ends):
                del left[holder]
        if not left or time.monotonic() >= until:
            break
        time.sleep(LOOK_S)
    return list(left)


def _is_done(worker: WorkerRecord, order: Order, ends: bool) -> bool:
    if worker.state != WorkerState.ALIVE:
        return True
    return not ends and worker.stated is not None and worker.stated.version >= order.version


def _told(order: Order, worker: WorkerRecord) -> str:
    now = shown_slot_groups(order.wanted.slot_groups)
    if order.wanted.leave is not None:
        now = "ends when its running jobs have ended"
    elif order.wanted.paused:
        now += ", paused"
    silent_s = (worker.now_us - worker.lease_until_us) / 1e6
    said = f"{order.name} ({order.holder}): order {order.version}: {now}"
    if not order.given:
        said += " (it was so already)"
    if silent_s > 0:
        said += f"; but its lease ran out {span(silent_s)} ago, so it may be gone"
    return said
