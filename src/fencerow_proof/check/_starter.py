"""The process that imports the application once and then forks for each run. It is a fork of the warm process itself.

It opens no database and starts no thread, so that a fork of it is what a worker is that has just started.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from fencerow.app import App
from fencerow.core.app.options import submit_options
from fencerow.core.errors import FencerowError, UnknownJob
from fencerow.core.store.connect import DEFAULT_URL
from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.url import SqliteUrl, parse_url
from fencerow.declaring import DeclaredJob
from fencerow.guards.transitions.machine import DeclaredTable
from fencerow_proof.check.actor import Subject, play, prepare
from fencerow_proof.check.places import Places
from fencerow_proof.check.wire import Channel, Fork, Hello, Load, Loaded, Prepare, Refused
from fencerow_proof.errors import CheckArguments, CheckNeedsMore, NothingToCheck

PR_SET_PDEATHSIG = 1


def main(address: str) -> None:
    """Serve the director until it goes."""
    sys.dont_write_bytecode = True  # a file written by an import is not the handler's doing
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # nobody waits for the forks: their connections tell their end
    channel = _connected(address, 0)
    load = channel.heard_from_director()
    if not isinstance(load, Load):
        return
    try:
        subject = _loaded(load)
    except Exception as error:
        channel.send(_refusal(error))
        return
    channel.send(_described(subject))
    _warm(subject)
    gc.collect()
    gc.freeze()  # what is shared with the forks stays shared
    while isinstance(order := channel.heard_from_director(), Fork):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # the application may have threads; they stay here
            pid = os.fork()
        if pid == 0:
            channel.close()
            _become(address, order, subject)


def _become(address: str, order: Fork, subject: Subject) -> None:
    """Play the part and end, without anything that belongs to the starter's own end."""
    code = 1
    try:
        _die_with_the_starter()
        channel = _connected(address, order.number)
        if isinstance(order.part, Prepare):
            prepare(subject, order.url, order.part, channel)
        else:
            play(subject, order.url, order.part, channel)
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _die_with_the_starter() -> None:
    """A handler that runs for ever must not outlive a check that was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _connected(address: str, number: int) -> Channel:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    channel = Channel(connection)
    channel.send(Hello(number, os.getpid()))
    return channel


def _loaded(load: Load) -> Subject:
    sys.path[:] = load.path
    app, job = _meant(load)
    handler = job.handler
    if not job.runs_here or handler.batch_max is not None:
        raise NothingToCheck(
            f"job {job.name} has no handler for one job here",
            "a batch handler's call is the run of many jobs"
            if handler.batch_max
            else "its code is elsewhere",
            "check a job whose function is declared with @app.job or @app.handles",
        )
    arguments = {} if load.is_stored else _arguments(load.args)
    if not load.is_stored:
        job.call_with(arguments, submit_options())  # refuses those that do not fit, before anything is made
    url = parse_url(app.config.url or DEFAULT_URL)
    named = url.path if isinstance(url, SqliteUrl) else ""
    return Subject(app, job, arguments, load.outside, load.setup, named, Places(Path.cwd()))


def _meant(load: Load) -> tuple[App, DeclaredJob[..., ..., Any, Any]]:
    app_module, _, app_name = load.app.partition(":")
    given = getattr(importlib.import_module(app_module), app_name) if load.app else None
    if load.is_stored and given is not None:
        return given, given.jobs[load.job]
    module_name, _, name = load.job.rpartition(":")
    return _found(importlib.import_module(module_name or app_module), name, given)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CheckArguments(
            f"the arguments are no JSON: {ascii(text)[:80]}", str(error), "quote them for the shell"
        ) from None
    if not isinstance(found, dict):
        raise CheckArguments(
            f"the arguments are {ascii(text)[:80]}", "one JSON object is expected", "name each one"
        )
    return found


def _found(module: ModuleType, name: str, given: App | None) -> tuple[App, DeclaredJob[..., ..., Any, Any]]:
    """The app and its job of that name, or the one that the module has under that name."""
    apps = [given] if given else [each for each in vars(module).values() if isinstance(each, App)]
    declared = getattr(module, name, None)
    wanted = declared.name if isinstance(declared, DeclaredJob) else name
    for app in apps:
        if wanted in app.jobs:
            return app, app.jobs[wanted]
    known = sorted({job for app in apps for job in app.jobs})
    raise UnknownJob(
        f"module {module.__name__} has no job {ascii(name)[:80]}",
        f"its apps know {', '.join(known)}" if known else "it has no app with jobs",
        "name it as MODULE:JOB, with the application's module, or give -A",
    )


def _described(subject: Subject) -> Loaded:
    config = subject.app.config
    url = parse_url(config.url or DEFAULT_URL)
    return Loaded(
        "sqlite" if isinstance(url, SqliteUrl) else "postgres",
        config.schema,
        config.table_prefix,
        subject.job.name,
        subject.job.queue,
        0,
        subject.named,
        sorted({name for each in _declared_moves() for name in _counting(each)}),
    )


def _declared_moves() -> list[DeclaredTable]:
    """What the application has declared of its own tables, wherever it lies."""
    return [each for each in gc.get_objects() if type(each) is DeclaredTable]


def _counting(moves: DeclaredTable) -> Iterator[str]:
    """The columns that go up with every claim or move, and the history: a second attempt may well write there."""
    table = str(moves.table).removeprefix("public.")
    if moves.version is not None:
        yield f"{table}.{moves.version}"
    if moves.history is not None:
        yield f"{str(moves.history).removeprefix('public.')}.*"
    for machine in moves.machines:
        for move in machine.moves.values():
            if move.lease is not None:
                yield from (f"{table}.{name}" for name in (move.lease.fence, move.lease.attempts) if name)


def _warm(subject: Subject) -> None:
    """Read now what every fork would have to read."""
    config = subject.app.config
    if subject.named:
        sqlite_queries(config.table_prefix)
    else:
        postgres_queries(config.schema)


def _refusal(error: Exception) -> Refused:
    if isinstance(error, FencerowError):
        return Refused(type(error).__name__, error.what, error.why, error.fix)
    return Refused(
        CheckNeedsMore.__name__,
        "the application cannot be imported",
        traceback.format_exc().strip().splitlines()[-1],
        "correct it, or run the check where the import works",
    )
