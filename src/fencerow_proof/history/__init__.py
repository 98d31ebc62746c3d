"""A history of everything that was done to the jobs, and a checker that decides from it whether the promises held.

`recording(app, folder)` in each process, then `check([folder], app.engine)`; docs/testing.md tells the rest.
"""

from __future__ import annotations

from fencerow_proof.history.check import Options, check
from fencerow_proof.history.engine import RecordingEngine, recording
from fencerow_proof.history.final import create_effects
from fencerow_proof.history.recorder import Recorder
from fencerow_proof.history.report import Report

__all__ = ["Options", "Recorder", "RecordingEngine", "Report", "check", "create_effects", "recording"]
