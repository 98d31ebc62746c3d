"""What an endpoint is: where ends of jobs are told, which of them, and how. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypedDict, get_args

import msgspec

from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.misfit import refuse_unknown
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.value import UNREADABLE
from fencerow.db.numbers import check_number
from fencerow.db.run import Row
from fencerow.db.text import check_text

Ending = Literal["succeeded", "failed", "cancelled"]
Order = Literal["none", "key", "endpoint"]
EndpointState = Literal["enabled", "disabled", "gone"]

ENDINGS: Final = get_args(Ending)
ORDERS: Final = get_args(Order)
NAME_LENGTH_MAX: Final = 100
TIMEOUT_S: Final = 15.0
ATTEMPTS_MAX: Final = 12
FILTER_MAX: Final = 100
OVERLAP_S: Final = DAY_S
OVERLAP_S_MAX: Final = 30 * DAY_S
REASON_LENGTH_MAX: Final = 500


class EndpointOptions(TypedDict, total=False):
    """What is chosen for an endpoint. What is not said is as its default, or stays as it is."""

    events: Sequence[Ending]  # which ends it is told; by default all three
    queues: Sequence[str] | None  # only of jobs of these queues
    jobs: Sequence[str] | None  # only of jobs of these names
    tags: Sequence[str] | None  # only of jobs with one of these tags
    with_result: bool  # whether a small result is told too
    in_order: Order  # "key": those of one exclusive key one after the other; "endpoint": all of them
    timeout_s: Seconds  # for one attempt, 1 to 300
    attempts_max: int  # 1 to 100


class EndpointWanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint wants, checked."""

    url: str
    events: tuple[str, ...] = ENDINGS
    queues: tuple[str, ...] | None = None
    jobs: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    with_result: bool = False
    in_order: str = "none"
    timeout_s: float = TIMEOUT_S
    attempts_max: int = ATTEMPTS_MAX

    def wants(self, ending: str, queue: str, job: str, tags: Sequence[str]) -> bool:
        """Whether it is told of such an end."""
        return (
            ending in self.events
            and (self.queues is None or queue in self.queues)
            and (self.jobs is None or job in self.jobs)
            and (self.tags is None or not set(self.tags).isdisjoint(tags))
        )


class Endpoint(EndpointWanted, frozen=True, kw_only=True):
    """An endpoint as it stands, without its secrets. Instants are microseconds since 1970 by the database's clock.

    `failures`: how many attempts failed in a row. Where they opened its circuit, nothing is sent before
    `open_until_us`. `old_until_us`: until then the secret before the last rotation signs too. `damaged` names what
    cannot be read, because something other than Fencerow wrote it: such an endpoint is told nothing.
    """

    id: str
    name: str
    state: EndpointState
    reason: str | None
    failures: int
    open_until_us: int | None
    version: int
    created_at_us: int
    changed_at_us: int
    changed_by: str | None
    old_until_us: int | None
    now_us: int
    damaged: tuple[str, ...] = ()

    open_until = AtOrNone("open_until_us")
    created_at = At("created_at_us")
    changed_at = At("changed_at_us")
    old_until = AtOrNone("old_until_us")
    now = At("now_us")

    def wants(self, ending: str, queue: str, job: str, tags: Sequence[str]) -> bool:
        """Whether it is told of such an end."""
        return self.state == "enabled" and not self.damaged and super().wants(ending, queue, job, tags)

    @property
    def is_open(self) -> bool:
        """Whether its circuit is open: so many attempts failed in a row that it is left alone for a while."""
        return self.open_until_us is not None


def endpoint_of(row: Row) -> Endpoint:
    """An endpoint as it was read. What something other than Fencerow wrote reads as nothing, and it is told nothing."""
    values: dict[str, object] = {}
    damaged: list[str] = []
    for (name, kind), found in zip(TYPES.items(), row, strict=True):
        try:
            values[name] = _value(name, kind, found)
        except UNREADABLE:
            values[name] = INSTEAD.get(kind)
            damaged.append(name)
    return msgspec.convert({**values, "damaged": damaged}, Endpoint)


def wanted_of(known: EndpointWanted, url: str, given: EndpointOptions) -> EndpointWanted:
    """What is known, with what was said.

    Raises:
        WrongCall: an option is unknown. InvalidInput: something cannot be used.
    """
    refuse_unknown(given, EndpointOptions.__annotations__, "the endpoint")
    return EndpointWanted(
        url=url,
        events=_endings(given["events"]) if "events" in given else known.events,
        queues=_filter("queues", given["queues"]) if "queues" in given else known.queues,
        jobs=_filter("jobs", given["jobs"]) if "jobs" in given else known.jobs,
        tags=_filter("tags", given["tags"]) if "tags" in given else known.tags,
        with_result=bool(given.get("with_result", known.with_result)),
        in_order=_one_of("in_order", given.get("in_order", known.in_order), ORDERS),
        timeout_s=_number("timeout_s", in_seconds(given.get("timeout_s", known.timeout_s)), 1.0, 300.0),
        attempts_max=int(_number("attempts_max", given.get("attempts_max", known.attempts_max), 1, 100)),
    )


def check_endpoint_name(name: object) -> str:
    """Accept the name of an endpoint.

    Raises:
        InvalidInput: it is no text of 1 to 100 characters.
    """
    return check_text(name, "the endpoint's name", NAME_LENGTH_MAX)


def _endings(given: Sequence[str]) -> tuple[str, ...]:
    found = {_one_of("an event", each, ENDINGS) for each in _texts("events", given)}
    if not found:
        raise InvalidInput(
            "no event was given", "an endpoint is told of at least one end", "pass events=[...]"
        )
    return tuple(each for each in ENDINGS if each in found)


def _filter(what: str, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """An empty filter would let nothing through, which is what `disable` is for: it means that there is none."""
    if given is None or len(given) == 0:
        return None
    return tuple(sorted({check_text(each, what, 200) for each in _texts(what, given)}))


def _texts(what: str, given: Sequence[str]) -> Sequence[str]:
    if isinstance(given, str) or len(given) > FILTER_MAX:
        found = "one text" if isinstance(given, str) else f"{len(given)} names"
        raise InvalidInput(
            f"{what} is {found}", f"a list of up to {FILTER_MAX} is expected", f"pass {what}=[...]"
        )
    return given


def _one_of(what: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise InvalidInput(
            f"{what} is {ascii(given)[:60]}", f"{', '.join(known)} are known", "choose one of them"
        )
    return given


def _number(what: str, given: float, least: float, most: float) -> float:
    try:
        check_number(what, given, least, most)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    return float(given)


COLUMNS: Final = (
    *("id", "name", "url", "events", "queues", "jobs", "tags", "with_result", "in_order", "timeout_s"),
    *(
        "attempts_max",
        "state",
        "reason",
        "failures",
        "open_until_us",
        "version",
        "created_at_us",
        "changed_at_us",
    ),
    *("changed_by", "old_until_us", "now_us"),
)
LISTS: Final = ("events", "queues", "jobs", "tags")
KINDS: Final = {each.name: each.type for each in msgspec.structs.fields(Endpoint)}
TYPES: Final = {name: KINDS[name] for name in COLUMNS}
INSTEAD: Final[dict[object, object]] = {
    str: "",
    int: 0,
    float: TIMEOUT_S,
    bool: False,
    tuple[str, ...]: (),
    EndpointState: "disabled",
}


def _value(name: str, kind: object, found: object) -> object:
    """A column as what it is to be; lists lie there as JSON.

    Raises:
        ValueError: it is something else.
    """
    if name in LISTS and found is not None:
        return msgspec.json.decode(str(found), type=kind)
    return msgspec.convert(bool(found) if kind is bool else found, kind)
