"""Moved: races of operations are in `fencerow_proof.arena.race`."""

from typing import TYPE_CHECKING

from fencerow.proof import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, "fencerow_proof.arena.race")
