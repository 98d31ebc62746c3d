"""`fencerow top`: queues, workers and latest failures, live in the terminal."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.documents import plain
from fencerow.command.options import asked, usual_options
from fencerow.core.errors import InvalidInput
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.operators.top.frame import frame
from fencerow.operators.top.look import look
from fencerow.operators.top.looker import Looker

if TYPE_CHECKING:
    from fencerow.operators.top.screen import TerminalScreen

KEYS = "q ends"
WIDTH = 120  # of a frame for a pipe or a file


@click.command()
@click.option("--once", is_flag=True, help="Print one frame as plain text, and end.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.2, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait between two looks, at least.",
)
@usual_options
@click.pass_context
def top(context: click.Context, once: bool, interval_s: float) -> int:
    """Show queues, workers and latest failures, live in the terminal. The key q ends it.

    With --once or --json it looks once, for scripts.
    """
    as_json = asked(context).json
    if not once and not as_json:
        _refuse_no_terminal()
    with working(asked(context)) as engine:
        if as_json:
            output.say_json(plain(look(engine)))
        elif once:
            for line in frame(look(engine), output.width() or WIDTH):
                output.say(line)
        else:
            return _live(engine, interval_s)
    return exits.OK


def _refuse_no_terminal() -> None:
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return
    raise InvalidInput(
        "there is no terminal to draw on",
        "input and output must be a terminal that can move its cursor",
        "use --once for one frame as plain text, or --json",
    )


def _live(engine: Engine, interval_s: float) -> int:
    # Not at the top: Windows has no such terminals, and all other commands run without.
    from fencerow.operators.top.screen import EndedBySignal, TerminalScreen

    try:
        with TerminalScreen() as screen:
            looker = Looker(partial(look, engine), interval_s, screen.wake)
            looker.start()
            try:
                _show(screen, looker, interval_s)
            finally:
                looker.stop()
    except KeyboardInterrupt:
        return exits.OK  # the other way to say q
    except EndedBySignal as ended:
        return ended.exit_code
    if looker.failed is not None:
        raise looker.failed
    return exits.OK


def _show(screen: TerminalScreen, looker: Looker, interval_s: float) -> None:
    """Draw after each look, and each second while the database is away, until a key or an error ends it."""
    while looker.failed is None:
        width, height = screen.size
        if looker.latest is not None:
            screen.draw(frame(looker.latest, width, height, note=looker.note or KEYS))
        if screen.quits(max(interval_s, 1.0)):
            return
