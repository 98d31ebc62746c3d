"""Sealed and signed payloads, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence


def _checks() -> Sequence[Check]:
    from fencerow.payloads.checks import examine_payloads

    return (Check("payloads", examine_payloads),)


WING = Wing("payloads", queries=("fencerow.payloads",), checks=_checks)
