"""What tests take out of the environment, and what they leave in it."""

from __future__ import annotations

import os

import pytest

# They decide which PostgreSQL is tested, for the whole run and for what it starts.
OF_THE_RUN = "FENCEROW_PG_"


def forget_settings(patch: pytest.MonkeyPatch) -> None:
    """Take every setting of Fencerow away that this machine may have."""
    for name in list(os.environ):
        if name.startswith("FENCEROW_") and not name.startswith(OF_THE_RUN):
            patch.delenv(name)
