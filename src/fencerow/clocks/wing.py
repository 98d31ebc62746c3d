"""Clocks that went back, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fencerow.core.chore import Chore, Site


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.clocks.chore import Ahead

    return (Ahead(site),)


WING = Wing("clocks", queries=("fencerow.clocks",), chores=_chores)
