"""The patience of what runs until it is told to stop, and starts before its server does: after a boot of the machine,
in a cluster; or while others have all connections, as in a rolling deploy.

Nothing is held meanwhile. So a signal or a supervisor's order ends the process at once, as in the middle of an import.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import chain, repeat

from fencerow.core.config import CoreConfig
from fencerow.core.errors import Unavailable
from fencerow.db.errors.base import line_of
from fencerow.db.text import amount
from fencerow.db.url import PostgresUrl

log = logging.getLogger("fencerow.worker")

# What PgBouncer says of the server behind it, in this language everywhere. It lets people in all the same. And what a
# server says that has no connection left, where libpq does not show its code: `refused_with`.
PASSING = (
    "server_login_retry",
    "pgbouncer cannot connect to server",
    "too many clients already",
    "remaining connection slots are reserved",
    "too many connections for",
    "no more connections allowed",
)
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def reach_patiently(
    url: PostgresUrl,
    config: CoreConfig,
    *,
    meanwhile: Callable[[], AbstractContextManager[object]] = nullcontext,
    tell: Callable[[str], None] = log.warning,
) -> None:
    """Return when the server lets this process in. While it lets in nobody at all, that may take `start_patience_s`.

    `meanwhile`: what is entered once it must be waited for, and left at the end of the wait. `tell`: is told of each
    failed try.

    Raises:
        UrlError: libpq does not understand the URL.
        Unavailable: it let in nobody for so long; or it refuses this role, password or database, which is told at once.
    """
    from fencerow.db.probe import lets_somebody_in, reach_postgres  # with its driver: only where it is used

    began, was_up, is_waiting, tries = time.monotonic(), False, False, 0
    with ExitStack() as waiting:
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
                if not is_waiting:
                    is_waiting = True
                    waiting.enter_context(meanwhile())
                tell(f"not started yet: the server is tried for {left_s:.0f} s more: {line_of(error)}")
            else:
                break
            time.sleep(min(left_s, pause_s * random.uniform(0.8, 1.2)))  # noqa: S311
    if tries:
        waited_s = time.monotonic() - began
        log.info(
            "the server answers after %.1f s and %s", waited_s, amount(tries, "failed try", "failed tries")
        )


def _answers(error: Unavailable) -> bool:
    """Whether what answered may be a server that refuses this process and no other."""
    return not any(each in error.why for each in PASSING)
