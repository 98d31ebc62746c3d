"""Django's setting FENCEROW: what a project says of its jobs, checked where it is read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings

from fencerow.django.errors import InvalidDjangoSettings


@dataclass(frozen=True, slots=True)
class DjangoSettings:
    """`database`: the alias in DATABASES whose database keeps the jobs. `app`: an App of the project's own, as
    `shop.jobs.app`. `config`: settings of Fencerow, by their names in docs/settings.md. `modules`: the names of modules
    of each installed app that declare jobs and tasks. `dashboard`: the path under which the dashboard is mounted.
    """

    database: str = "default"
    app: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    modules: Sequence[str] = ("tasks", "jobs")
    dashboard: str | None = None


NAMES = {each.name.upper(): each.name for each in fields(DjangoSettings)}


def read_settings() -> DjangoSettings:
    """What the project's settings say.

    Raises:
        InvalidDjangoSettings: FENCEROW is no dictionary, or has an unknown key or a value of the wrong type.
    """
    given = getattr(settings, "FENCEROW", {})
    if not isinstance(given, Mapping):
        raise _wrong(
            f"FENCEROW is a {type(given).__name__}",
            "a dictionary is expected",
            'write FENCEROW = {"DATABASE": "default"}',
        )
    for name in given:
        if name not in NAMES:
            close = difflib.get_close_matches(str(name).upper(), NAMES, n=1)
            raise _wrong(
                f"FENCEROW has the key {str(name)[:60]!r}",
                f"known are {', '.join(NAMES)}",
                f"did you mean {close[0]!r}?" if close else "take it out",
            )
    for name, kind, said in KINDS:
        if given.get(name) is not None and not isinstance(given[name], kind):
            raise _wrong(
                f"FENCEROW[{name!r}] is a {type(given[name]).__name__}", f"{said} is expected", "correct it"
            )
    if isinstance(given.get("MODULES"), str):
        raise _wrong(
            "FENCEROW['MODULES'] is one text", "a list of names is expected", f"write [{given['MODULES']!r}]"
        )
    return DjangoSettings(**{NAMES[name]: value for name, value in given.items() if value is not None})


KINDS: Sequence[tuple[str, type[Any], str]] = (
    ("DATABASE", str, "the name of an entry in DATABASES"),
    ("APP", str, "a dotted path such as shop.jobs.app"),
    ("CONFIG", Mapping, "a dictionary"),
    ("MODULES", Sequence, "a list of names"),
    ("DASHBOARD", str, "a path such as /fencerow/"),
)


def _wrong(what: str, why: str, fix: str) -> InvalidDjangoSettings:
    return InvalidDjangoSettings(what, why, fix)
