"""What the row of a worker tells of confirmed writes that the database has forgotten."""

from __future__ import annotations

import msgspec

from fencerow.core.model.loss import Loss


class _Told(msgspec.Struct, frozen=True):
    server: str | None = None
    lost: list[Loss] = []


def losses_of(info: object) -> list[Loss]:
    """The losses that a worker's row tells of; none if it tells them in a form we do not know."""
    try:
        return msgspec.convert(info, _Told).lost
    except msgspec.ValidationError:
        return []
