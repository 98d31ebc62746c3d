"""Proofs: what Fencerow is tested with, so that you can ask the same questions of your own code.

`explore` plays your own operations in every order of their statements. `fencerow_proof.check` kills and races a
handler, `fencerow_proof.history` records a run and checks it, `fencerow_proof.network` breaks connections.

The guide: docs/testing.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow_proof.explorer.violation import Violation
    from fencerow_proof.users.explore import explore
    from fencerow_proof.users.styles import Answer
    from fencerow_proof.users.told import Exploration, Played
else:
    __getattr__ = lazily(
        __name__,
        {
            "explore": "fencerow_proof.users.explore",
            "Answer": "fencerow_proof.users.styles",
            "Exploration": "fencerow_proof.users.told",
            "Played": "fencerow_proof.users.told",
            "Violation": "fencerow_proof.explorer.violation",
        },
    )

__all__ = ["explore", "Exploration", "Played", "Answer", "Violation"]
