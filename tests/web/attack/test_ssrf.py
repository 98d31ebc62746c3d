"""Where every address of the network is a trap, no webhook reaches a private one. Only root can make such a network."""

from __future__ import annotations

import pytest

from tools.attack import ssrf


@pytest.mark.prove
def test_no_webhook_reaches_a_private_address() -> None:
    if why := ssrf.lacking():
        pytest.skip(why)

    found = ssrf.attacked()

    assert found["connections_to_private_addresses"] == {}
    assert found["stands"], found
