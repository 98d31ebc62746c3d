"""`fencerow worker` as a service: several processes under one supervisor, and what tells others how they are."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from fencerow.cli import developing, logs
from fencerow.cli.metrics_port import WorkerMetrics, metrics_of_members, pages_of
from fencerow.cli.reloading import Reloader
from fencerow.cli.sources import Sources, folders_of
from fencerow.command.options import CommandOptions
from fencerow.core.config import COMMAND_PREFIX
from fencerow.core.errors import InvalidInput
from fencerow.core.worker.plain import Worker
from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.supervisor.lifeline import Lifeline
from fencerow.supervisor.member import MemberProcess
from fencerow.supervisor.notify import Notifier
from fencerow.supervisor.probes import NO_PAGES, ProbeAddress, Probes
from fencerow.supervisor.pulse import Pulse
from fencerow.supervisor.standing import of_worker
from fencerow.supervisor.supervisor import LOOK_S, Supervisor

MEMBER = "--member"
NO_WORDS: tuple[str, ...] = ()


def lifeline_of(text: str | None) -> Lifeline | None:
    """The lifeline of a process that a supervisor has started: `--member NUMBER:DESCRIPTOR`."""
    if text is None:
        return None
    number, _, descriptor = text.partition(":")
    try:
        return Lifeline(int(number), int(descriptor))
    except (ValueError, OSError):
        raise InvalidInput(
            f"{MEMBER} is {ascii(text)[:40]}",
            "it is for the processes that --processes starts",
            "leave it out, and say --processes",
        ) from None


def supervised(
    count: int,
    health: ProbeAddress | None,
    wanted: CommandOptions,
    level: str | None,
    log_format: str | None,
    *,
    metrics: bool = False,
) -> int:
    """Run so many processes of this very command until all have ended; returns the exit code.

    Raises:
        FencerowError: they cannot be started; or the address of the probes cannot be had.
    """
    logs.set_up(wanted.config(), level, log_format)
    notifier = Notifier.from_environment(os.environ)
    with contextlib.ExitStack() as stack:
        pages, more = NO_PAGES, NO_WORDS
        if metrics:
            pages, more = stack.enter_context(metrics_of_members())
        supervisor = Supervisor(
            count,
            lambda number, descriptor: command_of((*wanted.arguments, *more), number, descriptor),
            _environment(),
            tell=notifier.tell if notifier else None,
            look_s=notifier.beat_s if notifier else LOOK_S,
        )
        if health:
            stack.enter_context(Probes(health, supervisor.standing, pages))
        return supervisor.run()


def reloaded(wanted: CommandOptions, level: str | None, log_format: str | None) -> int:
    """Run this very command in a process that starts again when a source file changes; returns the exit code."""
    logs.set_up(wanted.config(), level, log_format)
    secret = os.environ.get(developing.VARIABLE) or developing.new_secret()
    first = iter([True])

    def start() -> MemberProcess:
        environment = developing.environment(os.environ, secret, is_first=next(first, False))
        return MemberProcess(1, partial(command_of, wanted.arguments), environment)

    return Reloader(start, Sources(folders_of(wanted.app_name()))).run()


@contextlib.contextmanager
def developed(worker: Worker, lifeline: Lifeline | None) -> Iterator[None]:
    """Tell who starts this process again how the worker is, and leave when told, while the block lasts."""
    if lifeline is None:
        yield
        return
    lifeline.serve(worker.signalled)
    with Pulse(worker.vitals, lifeline.tell):
        yield


def command_of(arguments: Sequence[str], number: int, descriptor: int) -> list[str]:
    """This command line once more, for one of the processes; what comes last counts."""
    flags = [f"-W{option}" for option in sys.warnoptions] + ["-O"] * sys.flags.optimize
    given = [each for each in arguments if each != "--"]
    return [sys.executable, *flags, "-m", "fencerow.cli.main", *given, MEMBER, f"{number}:{descriptor}"]


class Attended:
    """Tells how the worker of this process is, also while there is none yet: it waits for its database."""

    def __init__(self, lifeline: Lifeline | None, health: ProbeAddress | None, *, metrics: bool) -> None:
        self._lifeline = lifeline
        self._health = health
        self._has_metrics = metrics
        self._worker: Worker | None = None
        self._metrics: WorkerMetrics | None = None

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Tell a service manager and probes while the block lasts, unless a supervisor does."""
        with contextlib.ExitStack() as stack:
            if self._lifeline is None and (notifier := Notifier.from_environment(os.environ)):
                told = notifier.tell
                stack.enter_context(
                    Pulse(self._vitals, lambda vitals: told(of_worker(vitals)), beat_s=notifier.beat_s)
                )
            if self._lifeline is None and self._health is not None:
                pages = pages_of(lambda: self._metrics) if self._has_metrics else NO_PAGES
                stack.enter_context(Probes(self._health, lambda: of_worker(self._vitals()), pages))
            yield

    @contextlib.contextmanager
    def through(
        self, worker: Worker, metrics: WorkerMetrics | None, member_metrics: str | None
    ) -> Iterator[None]:
        """It is this worker from now on, whose supervisor is told while the block lasts."""
        self._worker, self._metrics = worker, metrics
        with contextlib.ExitStack() as stack:
            if (lifeline := self._lifeline) is not None:
                number_lines(lifeline.number)
                lifeline.serve(worker.signalled)
                stack.enter_context(Pulse(worker.vitals, lifeline.tell))
                if metrics is not None and member_metrics is not None:
                    stack.enter_context(metrics.told_to_supervisor(member_metrics, lifeline.number))
            elif metrics is not None:
                stack.enter_context(metrics.until_scraped())
            yield

    def _vitals(self) -> Vitals:
        return Vitals(Phase.STARTING) if self._worker is None else self._worker.vitals()


class Numbered(logging.Filter):
    """Gives each line of the one log the number of the process that wrote it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def filter(self, record: logging.LogRecord) -> bool:
        record.process_number = self._number
        return True


def number_lines(number: int) -> None:
    """Number what this process logs from now on."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(Numbered(number))


def _environment() -> dict[str, str]:
    """What the processes see: not what was meant for their supervisor alone."""
    alone = {f"{COMMAND_PREFIX}WORKER_{name}" for name in ("PROCESSES", "HEALTH", "METRICS")}
    return {name: value for name, value in os.environ.items() if name not in alone}
