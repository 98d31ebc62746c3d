"""What an operator sees of a rebuilt system: the page that Prometheus reads, without a wait between two looks."""

from __future__ import annotations

import asyncio
import time

import pytest

from fencerow.metrics import Metrics, looker
from tests.metrics.test_page import samples

Page = dict[tuple[str, ...], float]


class Watch:
    """A clock by which every look at the database is an old one, so that each page is of now."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        patch.setattr(looker, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def pass_by(self) -> None:
        """What was seen until now is old."""
        self._ahead_s += 60.0

    async def page(self, metrics: Metrics) -> Page:
        """All samples, as of now."""
        self.pass_by()
        return samples(await asyncio.to_thread(metrics.page))
