"""The canary of a dashboard: one at a time, beside the pages. All pages of the process show what it measured."""

from __future__ import annotations

import asyncio
import logging
import time

from fencerow.core.config import CoreConfig
from fencerow.core.errors import FencerowError
from fencerow.core.model.person import Person
from fencerow.doctor.canary.sending import send
from fencerow.doctor.canary.trial import Trial
from fencerow.doctor.errors import CanaryRefused

log = logging.getLogger("fencerow.web")


class Canary:
    """For one event loop. `trial`: the last one, as far as it came; `trouble`: why there is none."""

    def __init__(self) -> None:
        self.trial: Trial | None = None
        self.trouble: str | None = None
        self.began_s = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_flying(self) -> bool:
        """Whether one is under way from here."""
        return self._task is not None and not self._task.done()

    def begin(self, config: CoreConfig, person: Person) -> None:
        """Send one in the name of this person, and return at once.

        Raises:
            CanaryRefused: one is under way from here. Whether one is elsewhere is found when it is sent.
        """
        if self.is_flying:
            raise CanaryRefused(
                "a canary is under way", "two would disturb each other's measure", "wait until it has ended"
            )
        self.trial = self.trouble = None
        self.began_s = time.time()
        self._task = asyncio.ensure_future(self._send(config, person))

    async def aclose(self) -> None:
        """End it: its processes and its job go, too."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self, config: CoreConfig, person: Person) -> None:
        try:
            self._heard(await send(config, person, tell=self._heard))
        except FencerowError as error:
            log.warning("the canary of the dashboard: %s", error)
            self.trouble = f"{error.code}: {error.what}" if isinstance(error, CanaryRefused) else error.code
        except Exception as fault:
            log.error("the canary of the dashboard met %s", type(fault).__name__, exc_info=fault)
            self.trouble = "it met a fault of its own; the log has it"

    def _heard(self, trial: Trial) -> None:
        self.trial = trial
