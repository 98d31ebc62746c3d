"""Connections that break at an exact statement, for every driver: `FaultProxy` stands in between."""

from fencerow_proof.network.faults import Dice, Fault, Phase
from fencerow_proof.network.proxy import FaultProxy

__all__ = ["FaultProxy", "Fault", "Phase", "Dice"]
