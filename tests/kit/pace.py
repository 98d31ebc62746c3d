"""How long tests wait, on a machine that may be several times slower than yours.

Who waits for what must come, waits PATIENCE_S: only a failing test reaches it, and then the time does not matter. Who
needs a lease that nobody loses by a slow machine takes LONG_LEASE_S. `tools/gate.py` plays failed tests again with
TESTS_SLOWER=4, so that seconds which must be short (a limit, a lease that ends) become longer then: `slower`.
"""

from __future__ import annotations

import os

SLOWER = float(os.environ.get("TESTS_SLOWER", "1"))
PATIENCE_S = 180.0 * SLOWER
LONG_LEASE_S = 60.0 * SLOWER


def slower(seconds: float) -> float:
    """These seconds on a machine that is so much slower: for a limit or a lease that a test must see pass."""
    return seconds * SLOWER
