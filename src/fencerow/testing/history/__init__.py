"""A history of everything that was done to the jobs, and a checker that decides from it whether the promises held.

`recording(app, folder)` in each process, then `check([folder], app.engine)`; docs/testing.md tells the rest.
"""

from __future__ import annotations

from fencerow.testing.history.check import Options, check
from fencerow.testing.history.engine import RecordingEngine, recording
from fencerow.testing.history.final import create_effects
from fencerow.testing.history.recorder import Recorder
from fencerow.testing.history.report import Report

__all__ = ["Options", "Recorder", "RecordingEngine", "Report", "check", "create_effects", "recording"]
