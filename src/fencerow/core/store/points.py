"""The points of the core's statements at which wings have a say: `-- at: when jobs have ended` in a wing's file.

What all bring to a point is written out there when the queries are loaded, the core's own first and then the wings' in
their order. So it is one statement, or one script, under the guard of the whole: it happens with it or not at all.
A plan, an explorer and a test read one text. No program of ours composes SQL while it runs.

At a list point each brings parts of the statement (on PostgreSQL named queries, `handed AS (...)`; on SQLite statements
that end with a semicolon). At a condition point each brings one condition, and any of them is enough. At a value point
each brings a value, and the first that is not NULL counts. At an item point each brings further items of a list that
has others before, such as its own columns of a job. At a name point one wing says what it calls a thing of the core's;
at a join point it brings one more table.
What stands at a point takes no parameters (but for `PARAMETERS`), and may use the core's fragments. It costs every job
that comes there, so where its own table is empty, one probe must be all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fencerow.core.errors import ConfigError
from fencerow.db import query_files

# `ended`: the jobs that leave the live ones, all columns as they end. `revived`: the finished jobs that go back, all
# columns as they had ended. `moved`: live jobs that may have another state now; on SQLite only their ids. Those of them
# that are `waiting` wait for something, and may have given up what they had.
LISTS = (
    "when jobs have ended",
    "when jobs are revived",
    "when jobs wait again",
    "when attempts have failed",  # of `moved`: on PostgreSQL those that say so (has_failed), on SQLite all
    # Both stand on PostgreSQL: for those of `ended` that succeeded, and for all others. With :alone the statement is
    # a transaction of its own: so it may lock a job that waits (behind `stamped`, and passing over what is locked), and
    # queue it.
    "when attempts have succeeded",
    "when other ends are moved",
)
CONDITIONS = (
    "whose end is awaited",  # of one of `ended`: somebody besides a caller waits for its end
    "whose wait is over",  # of `job`, which is suspended: what it waited for has come, so it is to be woken
    "whose turn is over",  # of `job`, whose attempt is over: it gives up what let it run, and waits for that again
    "who needs a turn",  # of the row alone, by names of columns: others may go once it does not run
)
VALUES = (
    "where it waits first",  # the place at which `job` waits before it may run; NULL: it waits for nobody
    # The id of a job that must end before `job`, which has ended, is queued again; NULL: none. What is revived in the
    # same statement (:ids) counts. On PostgreSQL it locks what tells it, so that the next statement knows.
    "what must end before it is revived",
)
# The columns of a job that are a wing's, by their names alone. What a statement reads of `job` is said with that name.
ITEMS = (
    "columns of wings",  # all of them
    "columns that a submit writes",  # which a revive keeps; but for where it waits
    "values that a submit writes",  # of `job` and `alike`, in the order of these columns
    "what a template says",  # of `given`: what these values read of `alike`
    "fields of a template",  # the same with types, on PostgreSQL
    "columns of a queued submit",  # those of these columns that a job may have which waits for nobody
    "values of a queued submit",  # of `clock`, in the order of these columns
    "what a replaced job begins with",  # as `column = value`: what is not written by a submit
    "what a claim writes of a given job",  # as `column = value`: of `job` on PostgreSQL, one that waited at a place
    "columns of the moved",  # those that its parts read where jobs wait again or attempts have failed
    "told of a claimed job",  # and read by the worker behind all that is the core's but the lane
    "told of successes",  # of all that an end of attempts queued: JSON, in the first row, of `Requeued` as arrays
    "fields of wings",  # of `job`, as name and value of a JSON object: what is shown of them
)
NAMES = (
    "where it waits",  # the column of a job that says at which place it waits; NULL: it is suspended
    "where the lanes in turn begin",  # they are all those whose name comes behind this: a look tells of them as of one
    "where the lanes in turn end",  # and before this
    "lane it came from",  # of `job`, which was claimed just now: where it stood until then
)
JOINS = (
    "weights of lanes in turn",
)  # `known`, which has the weight of the lane of `ring`, in the queue :queue
PARAMETERS = {  # of the statements in which a point stands
    "weights of lanes in turn": {":queue"},
    "what must end before it is revived": {":ids"},
    "when attempts have succeeded": {":alone"},
}
POINTS = (*LISTS, *CONDITIONS, *VALUES, *ITEMS, *NAMES, *JOINS)
PARAMETER = re.compile(r"(?<![:\w]):[a-z_]+")


def points(packages: Sequence[str], dialect: str) -> dict[str, str]:
    """What stands at each point: brought by these packages, of which the first has the points.

    Raises:
        ConfigError: a file names a point that there is not, or says there what cannot stand there.
    """
    shared = query_files.fragments(packages[0], dialect, dict.fromkeys(POINTS, ""))
    given: dict[str, list[str]] = {point: [] for point in POINTS}
    for package in packages:
        for point, text in query_files.brought(package, dialect, shared).items():
            _check(package, point, text)
            given[point].append(text.strip())
    return {point: _joined(point, texts, dialect) for point, texts in given.items()}


def texts(packages: Sequence[str], package: str, dialect: str) -> Mapping[str, str]:
    """The queries of one of these packages by their names, as they are written out."""
    given = points(packages, dialect)
    return query_files.texts(
        package, dialect, given if package == packages[0] else shared(packages, dialect, given)
    )


def shared(packages: Sequence[str], dialect: str, given: Mapping[str, str]) -> Mapping[str, str]:
    """The fragments of the first of these packages, which all others may use. `given`: what stands at its points."""
    return query_files.fragments(packages[0], dialect, given)


def _joined(point: str, texts: Sequence[str], dialect: str) -> str:
    if point in CONDITIONS:
        return "".join(f" OR {text}" for text in texts)
    if point in ITEMS:
        return "".join(f", {text}" for text in texts)
    if point in (*NAMES, *JOINS):
        return _only(point, texts)
    if point in VALUES:
        return f"COALESCE({', '.join([*texts, 'NULL', 'NULL'])})"
    if dialect == "postgres":
        return "".join(f",\n{text}" for text in texts)  # behind the named queries that stand before the point
    return "\n".join(texts)


def _only(point: str, texts: Sequence[str]) -> str:
    if len(texts) != 1:
        raise ConfigError(
            f"{len(texts)} packages bring something to {point!r}",
            "a thing has one name, so exactly one may",
            "keep one of the lines that begin with `-- at:`",
        )
    return texts[0]


def _check(package: str, point: str, text: str) -> None:
    if point not in POINTS:
        raise ConfigError(
            f"{package} brings something to {point!r}",
            f"the points are {', '.join(map(repr, POINTS))}",
            "correct the line that begins with `-- at:`",
        )
    used = set(PARAMETER.findall(re.sub(r"'(?:[^']|'')*'", "''", text))) - PARAMETERS.get(point, set())
    if used:
        raise ConfigError(
            f"{package} uses the parameter {min(used)} at {point!r}",
            "statements of different parameters stand there",
            "read it from the rows of the point",
        )
