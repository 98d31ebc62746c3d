"""What happened to a job, as lines for people: what, by whom, and the error if there was one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fencerow.command.times import exact
from fencerow.core.model.job import Happening
from fencerow.doctor.places import told_gate
from fencerow.operators.names import named
from fencerow.web.dashboard.redacting import text_without_secrets

TEXT_MAX = 400
# What a person reads, and the state whose shape stands beside it; of what is not here, its own word and a dot.
WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "submitted": ("Submitted", "queued"),
        "claimed": ("Attempt {} claimed", "running"),
        "succeeded": ("Succeeded", "succeeded"),
        "failed": ("Failed", "failed"),
        "cancelled": ("Cancelled", "cancelled"),
        "stopped": ("Stopped", "cancelled"),
        "expired": ("Expired", "failed"),
        "unknown": ("Nobody knew its name", "failed"),
        "retried": ("Attempt {} failed, queued again", "failed"),
        "timed_out": ("Attempt {} was overdue", "failed"),
        "crashed": ("The process of attempt {} died", "failed"),
        "reclaimed": ("Taken back from its worker", "queued"),
        "released": ("Released, queued again", "queued"),
        "snoozed": ("Put off by its handler", "queued"),
        "suspended": ("Attempt {} suspended", "waiting"),
        "woken": ("Woken", "queued"),
        "revived": ("Revived", "queued"),
        "changed": ("Changed", "queued"),
        "replaced": ("Replaced by a later submit", "queued"),
        "cancel_requested": ("Cancel asked", "cancelled"),
        "yielded": ("Gave its turn up", "waiting"),
        "fell_back": ("Waits for its label no longer", "queued"),
        "moved_back": ("Due again at once: the clock went back", "queued"),
    }
)


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One line. `state` is that of its shape; None: a dot. `trace`: a traceback, a line each."""

    at_us: int
    what: str
    state: str | None
    by: str
    error: str = ""
    trace: tuple[str, ...] = ()


def lines_of(
    happenings: Sequence[Happening], names: Mapping[str, str], final_error: Any = None
) -> list[TimelineLine]:
    """All lines, the newest first. `final_error`: with what the job has failed; it stands at its end."""
    return [_line(each, names, final_error) for each in reversed(happenings)]


def _line(each: Happening, names: Mapping[str, str], final_error: Any) -> TimelineLine:
    what, state = WORDS.get(each.kind, (each.kind.replace("_", " ").capitalize(), None))
    detail = each.detail
    error = _error_in(final_error if each.kind in ("failed", "cancelled") and detail is None else detail)
    by = named(each.actor, names)
    words = [f"by {by}"] if by is not None else []
    words += [] if error is detail else list(_told(detail, error, is_change=each.kind == "changed"))
    text = "; ".join(words)
    return TimelineLine(
        each.at_us,
        what.format(each.attempt),
        state,
        text_without_secrets(text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"),
        text_without_secrets(_short(error)),
        tuple(text_without_secrets(str(error.get("traceback") or "")).splitlines()) if error else (),
    )


def _error_in(detail: Any) -> dict[str, Any] | None:
    """The error that a note is of, or holds."""
    if not isinstance(detail, dict):
        return None
    if "type" in detail and "message" in detail:
        return detail
    return next((found for each in detail.values() if (found := _error_in(each)) is not None), None)


def _short(error: dict[str, Any] | None) -> str:
    if error is None:
        return ""
    return ": ".join(str(error[each]) for each in ("type", "message") if error.get(each))


def _told(detail: Any, error: dict[str, Any] | None, *, is_change: bool) -> Sequence[str]:
    if not isinstance(detail, dict):
        return [] if detail is None else [str(detail)]
    hidden = ("claimed_at_us", "args_was") + (() if is_change else ("run_at_us",))
    return [
        _pair(name, value)
        for name, value in detail.items()
        if name not in hidden and value is not None and value is not error
    ]


def _pair(name: str, value: Any) -> str:
    if name == "gate":
        return f"waits at: {told_gate(str(value))}"
    if isinstance(value, list) and len(value) == 2:
        return f"{_word(name)}: {_plain(name, value[0])} → {_plain(name, value[1])}"
    if isinstance(value, dict):
        return "; ".join(_pair(*pair) for pair in value.items())
    return f"{_word(name)}: {_plain(name, value)}"


def _word(name: str) -> str:
    return name.removesuffix("_us").replace("run_at", "due").replace("_", " ")


def _plain(name: str, value: Any) -> str:
    if name.endswith("_us") and isinstance(value, int):
        return exact(value).replace("T", " ").replace("Z", " UTC")
    return "none" if value is None else str(value)
