"""Who counts as one caller, where requests are counted."""

from __future__ import annotations

import ipaddress


def caller_of(token_id: str, address: str | None) -> str:
    """The token, or for who has none the network: whoever has one IPv6 address has all of its /64."""
    if token_id:
        return f"token:{token_id}"
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return "address:unknown"
    if found.version == 4:
        return f"address:{found}"
    return f"address:{ipaddress.IPv6Network((int(found) >> 64 << 64, 64))}"
