"""Checks one handler: is it idempotent, is it safe side by side, and if not, why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from fencerow.declaring import DeclaredJob
from fencerow_proof.check.answers import answer_all, replace_evidence, undeclared
from fencerow_proof.check.desk import HOLDERS
from fencerow_proof.check.director import Director
from fencerow_proof.check.findings import Findings
from fencerow_proof.check.ground import Clean, Ground, Outcome
from fencerow_proof.check.opening import preset_of, scratch_of
from fencerow_proof.check.options import ORDERS, RUN_S, Options
from fencerow_proof.check.races import Race
from fencerow_proof.check.replace import Watch
from fencerow_proof.check.report import Answer, Question, Report
from fencerow_proof.check.schema import judge_schema
from fencerow_proof.check.scratch import private_folder, remove_folder
from fencerow_proof.check.trials import fail_everywhere, kill_everywhere
from fencerow_proof.check.wire import Declared
from fencerow_proof.errors import CheckArguments, NothingRecorded, NothingToCheck
from fencerow_proof.explorer.orders import Counted

Outside = Declared


def check_handler(
    job: DeclaredJob[..., ..., Any, Any] | str,
    args: dict[str, Any] | None = None,
    *,
    app: str = "",
    engine: str | None = None,
    url: str | None = None,
    setup: Callable[[str], object] | str | None = None,
    outside: Sequence[Declared | str] = (),
    ignored: Sequence[str] = (),
    allowed: Sequence[str] = (),
    orders: int = ORDERS,
    run_s: float = RUN_S,
    two_jobs: bool = False,
    say: Callable[[str], None] = lambda _line: None,
) -> Report:
    """Run a handler against scratch databases, disturb it everywhere, and report what diverges.

    `job` is a declared job or `MODULE:JOB`; it is imported afresh in processes of its own, so it and `setup` must be
    globals of modules. See `Options` for the rest. Your own database is never touched: every connection is led to
    the scratch one. `outside` names functions to be faked: `Outside("shop.mail:send", key="message_id")`.

    Raises:
        NothingToCheck, CheckArguments: there is no such job, or it does not take these arguments.
        CheckNeedsMore: it does not even run once; `fix` says what is missing.
        NothingRecorded: it did nothing that can be seen.
        ScratchNotEmpty: `url` names a database with tables.
        CheckStuck: a run does not come to its end.
    """
    options = Options(
        job=job if isinstance(job, str) else _name_of(job),
        app=app,
        args=_encoded(args),
        engine=engine,
        url=url,
        setup=setup if setup is None or isinstance(setup, str) else _target_of(setup),
        outside=tuple(each if isinstance(each, Declared) else Declared(each) for each in outside),
        ignored=tuple(ignored),
        allowed=tuple(allowed),
        orders=orders,
        run_s=run_s,
        two_jobs=two_jobs,
    )
    return check(options, say)


def check(options: Options, say: Callable[[str], None]) -> Report:
    """Check what the options name; `say` is told of the progress."""
    started = time.monotonic()
    with _ground(options, say) as ground:
        clean = ground.clean()
        report = Report(f"{options.job} {options.args}", ground.loaded.dialect)
        report.actions = tuple(f"{action.line}  ({action.place})" for action in [*clean.trace, *clean.seen])
        findings = Findings()
        for finding in undeclared([*clean.trace, *clean.seen]):
            findings.add(finding)
        if not clean.seen:  # else it never came to its end
            _try_all(ground, clean, findings, report)
        else:
            report.answers = tuple(
                Answer(each, False, ("not tried: what it calls outside is refused",)) for each in Question
            )
        report.findings = findings.all()
        report.seconds = time.monotonic() - started
        return report


def _try_all(ground: Ground, clean: Clean, findings: Findings, report: Report) -> None:
    if not clean.trace:
        raise NothingRecorded(
            f"job {ground.loaded.name} did nothing that the check can see",
            "no statement, no declared outside call, no file, no socket",
            "declare what it does outside (--outside), or check it with arguments for which it does something",
        )
    ground.comparison.learn(clean.outcome.state, ground.clean().outcome.state)
    watch = Watch(clean.trace, ground.jobs_table.removesuffix("jobs"), findings)
    points = kill_everywhere(ground, clean, findings, watch)
    failures = fail_everywhere(ground, clean, findings)
    side_by_side = _race(ground, clean, findings)
    locked = judge_schema(clean.trace, findings, ground.jobs_table)
    total = sum(counted.played for counted in side_by_side)
    report.sampled = any(counted.played < counted.total for counted in side_by_side)
    report.tried = {
        "points killed at": points,
        "actions failed": failures,
        "orders side by side": total,
        "runs": ground.runs,
    }
    report.notes = tuple(_notes(ground, side_by_side))
    good = {
        Question.SCHEMA: locked or ["nothing to show: it changes no schema"],
        Question.REPLACE: replace_evidence(watch.tables, watch.looks),
        Question.RERUN: [
            f"killed at {points} points and run again, and {_orders(side_by_side)}: the end is that of one run"
        ],
        Question.LOUD: [f"{failures} actions failed once: no run that lost something ended as a success"],
    }
    report.answers = answer_all(findings.all(), good)


def _race(ground: Ground, clean: Clean, findings: Findings) -> list[Counted]:
    ground.say("two attempts of one job side by side")
    counted = [Race(ground, clean, [clean.outcome], findings).play_all(ground.options.orders)]
    if ground.options.two_jobs:
        counted.append(_race_of_jobs(ground, clean, findings))
    return counted


def _race_of_jobs(ground: Ground, clean: Clean, findings: Findings) -> Counted:
    """On a ground of its own: where one job is killed and taken back, a second would be taken along."""
    ground.say("two jobs with the same arguments side by side")
    with _ground(ground.options, ground.say, jobs=2) as both:
        both.comparison = ground.comparison
        wanted = [_one_after_another(both, order) for order in ((0, 1), (1, 0))]
        return Race(both, clean, wanted, findings, two_jobs=True).play_all(ground.options.orders)


def _one_after_another(ground: Ground, order: Sequence[int]) -> Outcome:
    """What two jobs come to when they do not meet: one of the ends that are right when they do."""
    ground.fresh()
    processes = []
    for number in order:
        process = ground.first(number)
        ground.director.run(ground.scratch, process)
        ground.bury(process)
        ground.acknowledge(process, ground.claimed[number], HOLDERS[0])
        processes.append(process)
    return ground.outcome(processes)


def _orders(side_by_side: Sequence[Counted]) -> str:
    played = sum(counted.played for counted in side_by_side)
    total = sum(counted.total for counted in side_by_side)
    known = f"{played} orders" if played == total else f"a sample of {played} of about {total} orders"
    return f"{known} of two runs"


def _notes(ground: Ground, side_by_side: Sequence[Counted]) -> Iterator[str]:
    for counted in side_by_side:
        if counted.played < counted.total:
            yield f"a sample: {counted.played} of about {counted.total} orders were played; --orders plays more"
    if ground.comparison.unsteady:
        yield f"not compared, since two clean runs differ there: {', '.join(sorted(ground.comparison.unsteady))}"
    if ground.loaded.counting:
        yield f"not compared, since each attempt may raise it or add to it: {', '.join(ground.loaded.counting)}"
    if ground.options.ignored:
        yield f"not compared, as asked: {', '.join(ground.options.ignored)}"
    if ground.options.allowed:
        yield f"let through and not judged: {', '.join(ground.options.allowed)}"


@contextmanager
def _ground(options: Options, say: Callable[[str], None], jobs: int = 1) -> Iterator[Ground]:
    """Start everything, and leave nothing."""
    folder = private_folder()
    with ExitStack() as stack:
        stack.callback(remove_folder, folder)
        director = Director(folder, options, preset_of(options))
        stack.callback(director.close)
        say("importing the application")
        loaded = director.load()
        scratch = scratch_of(options, loaded, folder, stack, say)
        ground = Ground(options, loaded, scratch, director, say, jobs)
        ground.set_up()
        yield ground


def _encoded(args: dict[str, Any] | None) -> str:
    try:
        return msgspec.json.encode(args or {}).decode()
    except (TypeError, ValueError) as error:
        raise CheckArguments(
            "the arguments are no JSON", str(error), "pass what a submit would take, as data"
        ) from None


def _name_of(job: DeclaredJob[..., ..., Any, Any]) -> str:
    module = str(getattr(job, "__module__", ""))
    if module in ("", "__main__") or "<locals>" in str(getattr(job, "__qualname__", "")):
        raise NothingToCheck(
            f"job {job.name} cannot be imported by another process",
            "each run is a process of its own, which imports the module that declares it",
            "declare it as a global of a module",
        )
    return f"{module}:{job.name}"


def _target_of(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{function.__qualname__}"
