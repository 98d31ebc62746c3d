"""Moved: what a fault proxy does is in `fencerow_proof.network`."""

from typing import TYPE_CHECKING

from fencerow.proof import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, "fencerow_proof.network")
