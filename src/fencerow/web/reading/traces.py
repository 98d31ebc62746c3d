"""W3C trace context: what a caller sends of it is carried on if it is valid; else a trace is begun."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

MEMBERS_MAX = 32
STATE_LENGTH_MAX = 512
PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
KEY = r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
MEMBER = re.compile(rf"({KEY})=([ -+\--<>-~]{{0,255}}[!-+\--<>-~])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Trace:
    """The two headers as they go on. `begun`: the caller sent none that is valid."""

    traceparent: str
    tracestate: str | None
    begun: bool


def trace_of(parents: Sequence[str], states: Sequence[str]) -> Trace:
    """The caller's trace, from the values of the two headers; whatever is wrong with them, there is one."""
    parent = _parent_of(parents)
    if parent is None:
        return Trace(_begun(), None, begun=True)
    return Trace(parent, _state_of(states), begun=False)


def _begun() -> str:
    """The parent of a trace that begins here. Its ids are no secret: the system's source of those costs more than all
    else that is done with a request's headers."""
    trace, span = random.getrandbits(128) or 1, random.getrandbits(64) or 1
    return f"00-{trace:032x}-{span:016x}-00"


def _parent_of(parents: Sequence[str]) -> str | None:
    found = (
        PARENT.fullmatch(parents[0].strip(" \t")) if len(parents) == 1 and len(parents[0]) <= 512 else None
    )
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or set(trace) == {"0"} or set(span) == {"0"}:
        return None
    # Of a version to come the first four fields mean the same. It goes on as the version that we know.
    return f"00-{trace}-{span}-{flags if version == '00' else f'{int(flags, 16) & 1:02x}'}"


def _state_of(states: Sequence[str]) -> str | None:
    """All of it, or nothing: half of a state may say what nobody meant."""
    together = ",".join(states)
    members = [each.strip(" \t") for each in together.split(",", 4 * MEMBERS_MAX)]
    members = [each for each in members if each]
    found = [MEMBER.fullmatch(each) for each in members]
    keys = {each[1] for each in found if each}
    if len(keys) < len(members) or not 0 < len(members) <= MEMBERS_MAX:
        return None
    return _within(members)


def _within(members: list[str]) -> str | None:
    """What fits: those that are long go first, then the last ones, as the standard has it."""
    if len(",".join(members)) > STATE_LENGTH_MAX:
        members = [each for each in members if len(each) <= 128]
    while len(",".join(members)) > STATE_LENGTH_MAX:
        members.pop()
    return ",".join(members) or None
