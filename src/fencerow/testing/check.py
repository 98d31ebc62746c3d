"""Moved: `fencerow check` for tests is in `fencerow_proof.check`."""

from typing import TYPE_CHECKING

from fencerow.proof import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, "fencerow_proof.check")
