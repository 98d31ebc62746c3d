"""`submitted` and `assert_submitted`: which jobs the code under test has submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.app import App
from fencerow.core.answering import answering
from fencerow.core.errors import InvalidInput, UnknownJob
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.run import Procedure, ask
from fencerow.declaring import DeclaredJob
from fencerow.operators.finding import chosen_by, listing

Named = DeclaredJob[..., ..., Any, Any] | str
PAGE = 500
SHOWN_MAX = 10


@answering
def submitted(
    app: App, job: Named | None = None, *, queue: str | None = None, connection: object | None = None
) -> list[JobRecord]:
    """The jobs in the database, live and finished, in the order in which they were submitted.

    `connection`: of a test that is rolled back, which alone sees what it has submitted: any that a submit takes.
    """
    name = None if job is None else _name(app, job)
    return app.client.run(_reading(name, queue), connection)


@answering
async def asubmitted(
    app: App, job: Named | None = None, *, queue: str | None = None, connection: object | None = None
) -> list[JobRecord]:
    """`submitted` for async code, and for an async connection or session."""
    name = None if job is None else _name(app, job)
    return await app.client.arun(_reading(name, queue), connection)


def _reading(name: str | None, queue: str | None) -> Procedure[list[JobRecord]]:
    found: list[JobRecord] = []
    before: str | None = None
    while True:
        chosen = chosen_by(
            queue=queue,
            name=name,
            states=None,
            tags=(),
            metadata=None,
            scope=None,
            key=None,
            before_id=before,
        )
        if not (page := (yield from listing(chosen, PAGE))):
            break
        found += page
        before = page[-1].id
    whole = (yield from ask(store.read([each.id for each in found]))) if found else {}
    return [whole[each.id] for each in reversed(found) if each.id in whole]


@answering
def assert_submitted(
    app: App,
    job: Named,
    *,
    args: Mapping[str, Any] | None = None,
    queue: str | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
    count: int | None = None,
    connection: object | None = None,
) -> list[JobRecord]:
    """Assert that such a job was submitted, and return all that were: `count` of them, or at least one.

    `args` names those arguments that matter, by parameter; their values are compared as they are stored. What
    is not named does not matter. `count=0` asserts that there is none. `connection` is that of `submitted`.

    Raises:
        AssertionError: there are fewer or more. The message shows what was submitted, and how it differs.
    """
    name = _name(app, job)
    wanted = {"queue": queue, "key": key}
    wanted_args = {key: _stored(value, key) for key, value in (args or {}).items()}
    everything = submitted(app, connection=connection)
    mine = [each for each in everything if each.name == name]
    fits = [each for each in mine if not _differences(each, wanted, wanted_args, tags)]
    if len(fits) == count or (count is None and fits):
        return fits
    raise AssertionError(
        _story(
            name, count, fits, mine, everything, {**wanted, "args": wanted_args or None}, wanted_args, tags
        )
    )


def _name(app: App, job: Named) -> str:
    name = job if isinstance(job, str) else job.name
    if name not in app.jobs:
        raise UnknownJob(
            f"no job named {name!r} is declared by this app",
            f"it declares {', '.join(sorted(app.jobs)) or 'none'}",
            "pass a job of this app, or its name",
        )
    return name


def _stored(value: Any, name: str) -> Any:
    """A value as JSON would bring it back."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"the value of {name!r} cannot be compared: {error}",
            "arguments are stored as JSON",
            "pass JSON data, as the row has it",
        ) from None


def _differences(
    job: JobRecord, wanted: Mapping[str, Any], args: Mapping[str, Any], tags: Sequence[str]
) -> list[str]:
    """In what a job is not the one that is wanted."""
    found = [
        f"{name} is {getattr(job, name)!r}, not {value!r}"
        for name, value in wanted.items()
        if value is not None and getattr(job, name) != value
    ]
    has = job.args if isinstance(job.args, dict) else {}
    for name, value in args.items():
        if name not in has:
            found.append(f"it has no argument {name!r}")
        elif has[name] != value:
            found.append(f"{name} is {has[name]!r}, not {value!r}")
    found += [f"it has no tag {tag!r}" for tag in tags if tag not in (job.tags or ())]
    return found


def _story(
    name: str,
    count: int | None,
    fits: Sequence[JobRecord],
    mine: Sequence[JobRecord],
    everything: Sequence[JobRecord],
    asked: Mapping[str, Any],
    args: Mapping[str, Any],
    tags: Sequence[str],
) -> str:
    terms = [f"{key}={value!r}" for key, value in asked.items() if value is not None]
    terms += [f"tags={list(tags)!r}"] if tags else []
    such = f"job {name!r}" + (f" with {', '.join(terms)}" if terms else "")
    wanted = "at least one" if count is None else str(count)
    lines = [f"expected {wanted} of {such}, found {len(fits)}"]
    others = [each for each in mine if each not in fits]
    wanted_fields = {key: value for key, value in asked.items() if key != "args"}
    lines += [f"  fits:    {_shown(each)}" for each in fits[:SHOWN_MAX]]
    for each in others[:SHOWN_MAX]:
        lines += [f"  differs: {_shown(each)}"]
        lines += [
            f"           {each_difference}"
            for each_difference in _differences(each, wanted_fields, args, tags)
        ]
    if not mine:
        names = sorted({each.name for each in everything})
        lines.append(
            f"  no job {name!r} was submitted at all; there are {', '.join(names) if names else 'none'}"
        )
    return "\n".join(lines)


def _shown(job: JobRecord) -> str:
    return f"{job.name} in {job.queue}, {job.state}, args {job.args!r}"
