"""Which jobs are meant: filters that all must fit, over live and finished, a page at a time.

What people choose by is checked at the door: states as their names or as members, how many, which lists are lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypedDict, TypeVar

from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.model.labels import Plain, encode_metadata, encode_tags
from fencerow.core.model.state import State
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text, shown
from fencerow.operators import looking


class _Common(TypedDict):
    """What both statements take."""

    queue: str | None
    name: str | None
    states: Sequence[State] | None
    scope: str | None
    key: str | None
    before_id: str | None
    from_id: str | None


K = TypeVar("K", bound=StrEnum)

TEXT_MAX = 1_000  # of a name that is looked for
LIMIT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The jobs that fit all that is given; nothing given means every job.

    `tags`: those that a job must carry. `metadata`: top-level fields and their plain values (text, number, true,
    false, null). `before_id`: only jobs whose id is lower, which is how the next page is asked for.
    `from_id`: only jobs whose id is not lower, so a search for what hardly any job has ends there.
    """

    queue: str | None = None
    name: str | None = None
    states: tuple[State, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Plain] | None = None
    scope: str | None = None
    key: str | None = None
    before_id: str | None = None
    from_id: str | None = None

    def is_empty(self) -> bool:
        """Whether it means every job there is."""
        return self == JobFilter()


def chosen_by(
    *,
    queue: str | None,
    name: str | None,
    states: Sequence[State | str] | None,
    tags: Sequence[str],
    metadata: Mapping[str, Plain] | None,
    scope: str | None,
    key: str | None,
    before_id: str | None,
) -> JobFilter:
    """The filter for what a caller wrote.

    Raises:
        InvalidInput: there is no such state, or a value that should be a list, a text or an id is none.
    """
    for what, text in {"queue": queue, "name": name, "scope": scope, "key": key}.items():
        if text is not None:
            check_text(text, what, TEXT_MAX)
    return JobFilter(
        queue,
        name,
        members(State, states, "states"),
        tuple(sequence(tags, "tags")),
        metadata,
        scope,
        key,
        None if before_id is None else parse_id(before_id),
    )


def listing(chosen: JobFilter, limit: int) -> Procedure[list[JobRecord]]:
    """The newest jobs that fit, at most `limit`.

    A search on SQLite is several short looks, so that it never keeps a writer waiting for long.

    Raises:
        InvalidInput: a tag or a field cannot belong to any job, a value is no plain one, or `limit` is out of range.
    """
    limited(limit)
    tags, metadata = encode_tags(chosen.tags), _plain(chosen.metadata or {})
    if tags is None and metadata is None:
        return (yield from ask(looking.list_jobs(**_common(chosen), limit=limit)))
    found: list[JobRecord] = []
    while True:
        page = looking.search(tags=tags, metadata=metadata, **_common(chosen), limit=limit - len(found))
        answer = yield from ask(page)
        found += answer.jobs
        if answer.looked_to is None:
            return found
        chosen = replace(chosen, before_id=answer.looked_to)


def _plain(metadata: Mapping[str, Plain]) -> str | None:
    text = encode_metadata(metadata)
    for field, value in metadata.items():
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise InvalidInput(
                f"metadata field {ascii(field)[:60]} is searched by a value of type {type(value).__name__}",
                "only plain values can be searched: text, numbers, true, false and null",
                "search for a plain value",
            )
    return text


def _common(chosen: JobFilter) -> _Common:
    return {
        "queue": chosen.queue,
        "name": chosen.name,
        "states": chosen.states or None,
        "scope": chosen.scope,
        "key": chosen.key,
        "before_id": chosen.before_id,
        "from_id": chosen.from_id,
    }


def members(kind: type[K], given: object, what: str) -> tuple[K, ...]:
    """The members that were given, as such or by their names; none if nothing was.

    Raises:
        InvalidInput: it is one text and no list of them, or names something else.
    """
    return tuple(member(kind, each, what) for each in sequence(given, what))


def member(kind: type[K], given: object, what: str) -> K:
    """The member that was given, as such or by its name.

    Raises:
        InvalidInput: there is no such member.
    """
    if isinstance(given, str) and given in set(kind):
        return kind(given)
    known = ", ".join(each.value for each in kind)
    raise InvalidInput(f"{what} has {_shown(given)}", f"known are {known}", "name one of these")


def sequence(given: object, what: str) -> tuple[Any, ...]:
    """What was given, if it is a list; one text would pass for the list of its letters.

    Raises:
        InvalidInput: it is one text, or no list at all.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, (Sequence, Set)):
        raise InvalidInput(f"{what} is {_shown(given)}", "a list is expected", f"pass {what}=[...]")
    return tuple(given)


def limited(limit: object, what: str = "limit") -> int:
    """How many are asked for.

    Raises:
        InvalidInput: it is no whole number from 1 to `LIMIT_MAX`.
    """
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= LIMIT_MAX:
        return limit
    raise InvalidInput(f"{what} is {_shown(limit)}", f"1 to {LIMIT_MAX} are listed", f"correct {what}")


def _shown(given: object) -> str:
    return shown(given, 60) if isinstance(given, (int, str)) else f"of type {type(given).__name__}"
