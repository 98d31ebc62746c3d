"""How long to wait before the next attempt, and how that is stored with a job."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from fencerow.core.errors import ConfigError
from fencerow.core.model.control import DELAY_S_MAX
from fencerow.core.model.seconds import Seconds, keep_in_seconds
from fencerow.core.model.value import NULL, UNREADABLE
from fencerow.db.numbers import check_number


@dataclass(frozen=True)
class Backoff:
    """The delay before a retry: `base_s`, times `factor` for each further failure, at most `cap_s`, and up to
    `jitter` more.

    The jitter is a part of the delay, so that jobs that failed together do not come back together.

    Raises:
        ConfigError: a number is out of range.
    """

    base_s: float = 5.0
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.2

    if TYPE_CHECKING:

        def __init__(
            self,
            base_s: Seconds = 5.0,
            factor: float = 2.0,
            cap_s: Seconds = 300.0,
            jitter: float = 0.2,
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "base_s", "cap_s")
        check_number("backoff base_s", self.base_s, 0.0, DELAY_S_MAX)
        check_number("backoff factor", self.factor, 1.0, 1000.0)
        check_number("backoff cap_s", self.cap_s, 0.0, DELAY_S_MAX)
        check_number("backoff jitter", self.jitter, 0.0, 1.0)

    def delay_s(self, failures: int, random: Callable[[], float]) -> float:
        """Seconds to wait after the failure number `failures`, counted from 1. `random` gives 0 up to 1."""
        delay = min(self.cap_s, self._grown_s(max(failures, 1) - 1))
        return delay * (1.0 + self.jitter * min(max(random(), 0.0), 1.0))

    def to_json(self) -> str:
        """The form kept with a job that was submitted with a backoff of its own."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str | bytes) -> Backoff:
        """The backoff behind `to_json`.

        Raises:
            ConfigError: the text is no such backoff, or a number is out of range.
        """
        try:
            return msgspec.json.decode(text, type=Backoff)
        except ConfigError:
            raise
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                "the stored backoff cannot be read", str(error)[:200], "submit the job with another backoff"
            ) from None

    def _grown_s(self, times: int) -> float:
        if self.base_s == 0 or self.factor == 1:
            return self.base_s
        try:
            return float(self.base_s * float(self.factor) ** times)
        except OverflowError:
            return math.inf


class _Names(msgspec.Struct, frozen=True):
    base_s: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def encode_options(backoff: Backoff | None, args_version: int) -> str | None:
    """The text to store beside a job's arguments: a backoff of its own, and their version. None: it has neither."""
    if args_version == 1:
        return None if backoff is None else backoff.to_json()
    fields = {} if backoff is None else msgspec.to_builtins(backoff)
    return msgspec.json.encode({"args_version": args_version, **fields}).decode()


def backoff_of(stored: bytes) -> Backoff | None:
    """The job's own backoff, if it was submitted with one.

    Raises:
        ConfigError: what is stored cannot be read.
    """
    if stored == NULL:
        return None
    try:
        if msgspec.json.decode(stored, type=_Names).base_s is msgspec.UNSET:
            return None
    except UNREADABLE:
        pass  # told below, in the words of a backoff
    return Backoff.from_json(stored)
