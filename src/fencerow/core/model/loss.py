"""What a worker tells in its row when the database has forgotten what it had confirmed to it."""

from __future__ import annotations

import msgspec


class Loss(msgspec.Struct, frozen=True):
    """Confirmed writes were missing. Instants are microseconds: the database's, but for `noticed_us`, the host's."""

    noticed_us: int
    kept_until_us: (
        int | None
    )  # the newest renewal that is still there; None when the whole registration is gone
    confirmed_until_us: int | None  # the newest renewal that was confirmed
    server: str | None
