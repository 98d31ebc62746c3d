"""What operators do to a running system, as the core is told of it."""

from __future__ import annotations

from fencerow.core.wing import Wing

WING = Wing("operators", queries=("fencerow.operators",))
