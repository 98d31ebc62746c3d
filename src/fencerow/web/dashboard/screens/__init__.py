"""All screens. A file here with a `SCREENS` is one or several: nothing else names it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from fencerow.web.dashboard.screen import Screen


def all_screens(also: Sequence[Screen] = ()) -> tuple[Screen, ...]:
    """The screens of all files of this folder and those of a program, as they stand in the side of the page."""
    found: list[Screen] = [*also]
    for module in iter_modules(__path__, f"{__name__}."):
        found += getattr(import_module(module.name), "SCREENS", ())
    return tuple(sorted(found, key=lambda each: (each.place, each.name)))
