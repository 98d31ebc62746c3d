"""The patience of a worker that starts before its server does: after a boot of the machine, or in a cluster.

Nothing is held meanwhile. So a signal or a supervisor's order ends the process at once, as in the middle of an import.
"""

from __future__ import annotations

import logging
import random
import time
from itertools import chain, repeat

from fencerow.core.config import CoreConfig, PostgresUrl
from fencerow.core.errors import Unavailable
from fencerow.db.errors.base import line_of
from fencerow.db.text import amount

log = logging.getLogger("fencerow.worker")

# What PgBouncer says of the server behind it, in this language everywhere. It lets people in all the same.
AWAY_BEHIND = ("server_login_retry", "pgbouncer cannot connect to server")
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def reach_patiently(url: PostgresUrl, config: CoreConfig) -> None:
    """Return when the server lets this worker in. While it lets in nobody at all, that may take `start_patience_s`.

    Raises:
        UrlError: libpq does not understand the URL.
        Unavailable: it let in nobody for so long; or it refuses this role, password or database, which is told at once.
    """
    from fencerow.db.probe import lets_somebody_in, reach_postgres  # with its driver: only where it is used

    began, was_up, tries = time.monotonic(), False, 0
    for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
        try:
            reach_postgres(url.conninfo, config.connect_timeout_s)
        except Unavailable as error:
            left_s = began + config.start_patience_s - time.monotonic()
            was_up, was_up_before = _answers(error) and lets_somebody_in(url.conninfo), was_up
            if left_s <= 0 or (was_up and was_up_before):
                raise
            tries += 1
            if was_up:
                continue  # perhaps it came up between the two looks; refused once more, it is us whom it refuses
            log.warning(
                "no job runs yet, and the server is tried for %.0f s more: %s", left_s, line_of(error)
            )
        else:
            break
        time.sleep(min(left_s, pause_s * random.uniform(0.8, 1.2)))  # noqa: S311
    if tries:
        waited_s = time.monotonic() - began
        log.info(
            "the server answers after %.1f s and %s", waited_s, amount(tries, "failed try", "failed tries")
        )


def _answers(error: Unavailable) -> bool:
    """Whether there may be a server behind what answered."""
    return not any(each in error.why for each in AWAY_BEHIND)
