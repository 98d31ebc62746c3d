"""The package of proofs beside this one: an extra, so it may be missing. What has moved there is still found here.

The old names go with the next release; each says its new one until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from fencerow.core.errors import MissingExtra
from fencerow.core.lazy import warn_of_a_move

PACKAGE = "fencerow_proof"


def missing(asked: str) -> MissingExtra:
    """What is told to who asks for something of the package where it is not installed."""
    return MissingExtra(
        f"{asked} needs the package fencerow-proof, which is not installed",
        "the proofs are a package of their own, so that programs without them install less",
        'python -m pip install "fencerow[proof]"',
    )


def moved(package: str, homes: Mapping[str, str] | str) -> Callable[[str], object]:
    """The `__getattr__` of a module: where each name is now, or the one place to which all have gone."""

    def find(name: str) -> object:
        home = homes if isinstance(homes, str) else homes.get(name)
        if home is None or name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(home)
        except ModuleNotFoundError as error:
            if error.name != PACKAGE:
                raise
            raise missing(f"{package}.{name}") from None
        warn_of_a_move(package, name, home)
        return getattr(module, name)

    return find
