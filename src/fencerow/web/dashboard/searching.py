"""The search for jobs as a person types it: `queue:mail state:failed after:2h`. What is not understood is told."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.labels import Plain
from fencerow.core.model.state import State
from fencerow.operators.finding import JobFilter
from fencerow.operators.prefixes import IdRange, parse_prefix

WORD = re.compile(r"""(?:[^\s"]|"[^"]*"?)+""")
AGE = re.compile(r"(\d{1,6})\s*(s|m|min|h|d)")
UNIT_S = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
NAMES = ("queue", "state", "job", "tag", "meta", "key", "scope", "after", "before", "id")
LENGTH_MAX = 1_000
ID_DIGITS_MIN = 8


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a search. `without`: the search without it. `why`: why it is not understood; None: it is."""

    text: str
    name: str
    value: str
    without: str = ""
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """What a person looks for. `after_s` and `before_s`: submitted within, and before, so many seconds before now.
    `meant`: ids that begin so."""

    tokens: tuple[Token, ...] = ()
    chosen: JobFilter = field(default_factory=JobFilter)
    after_s: int | None = None
    before_s: int | None = None
    meant: IdRange | None = None

    @property
    def odd(self) -> Sequence[Token]:
        """What is not understood, and looked for by nobody."""
        return [each for each in self.tokens if each.why is not None]

    @property
    def is_plain(self) -> bool:
        """Whether nothing but states and a queue is asked for."""
        return {each.name for each in self.tokens} <= {"queue", "state"} and not self.odd

    def page_after(self, page: str | None, now_us: int) -> JobFilter:
        """The filter of the page below the job `page`, the newest one if that is None."""
        bounds = [page] if page else []
        if self.before_s is not None:
            bounds.append(first_id(now_us - self.before_s * 1_000_000))
        return replace(
            self.chosen, before_id=min(bounds, default=None), from_id=self.lowest_id(now_us) or None
        )

    def lowest_id(self, now_us: int) -> str:
        """The id below which nothing is looked for."""
        return "" if self.after_s is None else first_id(now_us - self.after_s * 1_000_000)


def first_id(us: int) -> str:
    """The lowest id that can be made at this instant: the id of a job begins with its milliseconds."""
    digits = f"{max(us // 1000, 0):012x}"
    return f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000"


def searched(text: str) -> Search:
    """The search that somebody typed. It raises nothing: what is not understood is in `odd`."""
    words = WORD.findall(text[:LENGTH_MAX])
    search = Search()
    for place, word in enumerate(words):
        name, value = _parted(word)
        rest = " ".join(each for at, each in enumerate(words) if at != place)
        token = Token(word, name, value, rest)
        try:
            search = _READERS[name](search, value) if name in _READERS else _refused(name)
        except InvalidInput as error:
            token = replace(token, why=error.why or error.what)
        search = replace(search, tokens=(*search.tokens, token))
    return search


def term(name: str, value: str) -> str:
    """`queue:mail`; a value with spaces stands in quotes."""
    return f'{name}:"{value}"' if re.search(r"\s", value) else f"{name}:{value}"


def command(search: Search) -> str | None:
    """The command that lists the same; None where none does."""
    options = {"job": "name", "queue": "queue", "state": "state", "tag": "tag", "meta": "meta", "key": "key"}
    options["scope"] = "scope"
    if any(each.name not in options for each in search.tokens) or search.odd:
        return None
    parts = [f"--{options[each.name]} {shlex.quote(each.value)}" for each in search.tokens]
    return " ".join(["fencerow jobs list", *parts])


def _parted(word: str) -> tuple[str, str]:
    name, colon, value = word.partition(":")
    if colon and name.isidentifier():
        return name.lower(), value.replace('"', "")
    plain = word.replace('"', "")
    digits = plain.replace("-", "")
    is_id = len(digits) >= ID_DIGITS_MIN and re.fullmatch(r"[0-9a-fA-F]+", digits) is not None
    return ("id" if is_id else "job"), plain


def _refused(name: str) -> Search:
    raise InvalidInput(f"{name}: is no filter", f"there is no filter {name}; there are {', '.join(NAMES)}")


def _once(given: object, what: str) -> None:
    if given is not None:
        raise InvalidInput(f"{what} is given twice", f"a job has one {what}")


def _text(name: str) -> Callable[[Search, str], Search]:
    attribute = "name" if name == "job" else name

    def read(search: Search, value: str) -> Search:
        _filled(value)
        _once(getattr(search.chosen, attribute), name)
        given: dict[str, Any] = {attribute: value}
        return replace(search, chosen=replace(search.chosen, **given))

    return read


def _state(search: Search, value: str) -> Search:
    known = {state.value: state for state in State}
    if value.lower() not in known:
        raise InvalidInput(f"there is no state {value}", f"the states are {', '.join(known)}")
    states = (*search.chosen.states, known[value.lower()])
    return replace(search, chosen=replace(search.chosen, states=states))


def _tag(search: Search, value: str) -> Search:
    _filled(value)
    return replace(search, chosen=replace(search.chosen, tags=(*search.chosen.tags, value)))


def _meta(search: Search, value: str) -> Search:
    field_name, equals, text = value.partition("=")
    if not field_name or not equals:
        raise InvalidInput("meta is no field", "it is written meta:FIELD=VALUE")
    try:
        plain: Plain = msgspec.json.decode(text, type=str | int | float | bool | None)
    except msgspec.DecodeError:  # what is no JSON is text
        plain = text
    metadata = {**(search.chosen.metadata or {}), field_name: plain}
    return replace(search, chosen=replace(search.chosen, metadata=metadata))


def _age(value: str) -> int:
    found = AGE.fullmatch(value.lower())
    if found is None:
        raise InvalidInput("it is no length of time", "it is written as 90s, 15min, 2h or 3d")
    return int(found[1]) * UNIT_S[found[2]]


def _after(search: Search, value: str) -> Search:
    _once(search.after_s, "after")
    return replace(search, after_s=_age(value))


def _before(search: Search, value: str) -> Search:
    _once(search.before_s, "before")
    return replace(search, before_s=_age(value))


def _id(search: Search, value: str) -> Search:
    _once(search.meant, "id")
    return replace(search, meant=parse_prefix(value))


def _filled(value: str) -> None:
    if not value:
        raise InvalidInput("nothing stands behind the colon", "write what you look for there")


def page_of(text: str | None) -> str | None:
    """The job below which a page begins.

    Raises:
        InvalidInput: it is no id.
    """
    return None if not text else parse_id(text)


_READERS: dict[str, Callable[[Search, str], Search]] = {
    **{name: _text(name) for name in ("queue", "job", "key", "scope")},
    "state": _state,
    "tag": _tag,
    "meta": _meta,
    "after": _after,
    "before": _before,
    "id": _id,
}
