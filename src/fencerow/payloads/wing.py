"""Sealed and signed payloads, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fencerow.core.config import Settings


def _checks() -> Sequence[Check]:
    from fencerow.payloads.checks import examine_payloads
    from fencerow.payloads.outside.checks import examine_outside

    return (Check("payloads", examine_payloads), Check("payloads outside", examine_outside))


def _settings() -> type[Settings]:
    from fencerow.payloads.settings import PayloadSettings

    return PayloadSettings


WING = Wing(
    "payloads",
    queries=("fencerow.payloads",),
    checks=_checks,
    staying={"payload_owner": "the new database owns outside what the file did, by a step of its own"},
    settings=_settings,
)
