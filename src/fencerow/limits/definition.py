"""What a limit says: `Limit`. Checked when it is made, so that nothing wrong is ever stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from fencerow.calendar.window_text import Dated, Weekly
from fencerow.core.errors import InvalidInput
from fencerow.core.model.value import UNREADABLE
from fencerow.db.text import check_text, shown
from fencerow.limits.hours import parsed
from fencerow.limits.rate import Breaker, Rate, check_whole

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
NAME_LENGTH_MAX = 100
KEY_LENGTH_MAX = 200
QUEUE = "queue:"
FLEET = "fleet"
AT_ONCE_MAX = 1_000_000
HOURS_MAX = 20
VERSION_MAX = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: how many jobs of a queue, or of all queues, may run at once, and how fast and when they start.

        Limit("queue:mail", at_once=4, rate=Rate(100, per_s=60))          # all jobs of a queue
        Limit("fleet", at_once=500)                                       # all jobs there are
        Limit("github", at_once=4)                                        # the jobs that name it
        Limit("mail", at_once=1, per_key=True)                            # the jobs that name mail/ada, mail/bob, ...

    What is given must all hold. `at_once`: how many at once. `hours`: they start only then, as `mon-fri 09:00-17:00
    Europe/Berlin`; several may be given. `breaker`: failures stop the starts for a while. `per_key`: each key has the
    whole limit for itself. `version`: raise it whenever a declaration changes, so that of two programs the newer one
    wins.

    Raises:
        InvalidInput: the name or a number cannot be used, or it would limit nothing.
    """

    name: str
    at_once: int | None = None
    rate: Rate | None = None
    hours: tuple[str, ...] = ()
    breaker: Breaker | None = None
    per_key: bool = False
    version: int = 1

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            *,
            at_once: int | None = None,
            rate: Rate | None = None,
            hours: str | Sequence[str] = (),
            breaker: Breaker | None = None,
            per_key: bool = False,
            version: int = 1,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "hours", _said_hours(self.hours))
        if self.at_once is not None:
            check_whole(self.at_once, f"at_once of the limit {self.name}", AT_ONCE_MAX)
        check_whole(self.version, f"version of the limit {self.name}", VERSION_MAX)
        if len(self.hours) > HOURS_MAX:
            raise InvalidInput(
                f"the limit {self.name} has {len(self.hours)} hours",
                f"at most {HOURS_MAX} are kept",
                "join some",
            )
        for each in self.hours:
            parsed(each)
        for what, given, wanted in (("rate", self.rate, Rate), ("breaker", self.breaker, Breaker)):
            if given is not None and not isinstance(given, wanted):
                raise InvalidInput(
                    f"{what} of the limit {self.name} is of type {type(given).__name__}",
                    f"a {wanted.__name__} is expected",
                    f"pass {what}={wanted.__name__}(...)",
                )
        self._refuse_nonsense()

    def _refuse_nonsense(self) -> None:
        if self.at_once is None and self.rate is None and not self.hours and self.breaker is None:
            raise InvalidInput(
                f"the limit {self.name} limits nothing",
                "a limit has at_once, a rate, hours or a breaker",
                "give one of them",
            )
        if self.per_key and (self.is_of_queues or "/" in self.name):
            raise InvalidInput(
                f"the limit {self.name} is to be per key",
                "only a limit that jobs name has keys",
                "leave per_key out",
            )

    @property
    def is_of_queues(self) -> bool:
        """Whether it limits all jobs of a queue, or all there are, whatever they name."""
        return self.name == FLEET or self.name.startswith(QUEUE)

    @property
    def queue(self) -> str:
        """The queue that it is of; empty for the fleet."""
        return self.name.removeprefix(QUEUE) if self.name != FLEET else ""

    @property
    def openings(self) -> tuple[Weekly | Dated, ...]:
        """Its hours, understood."""
        return tuple(parsed(each) for each in self.hours)

    def document(self) -> str:
        """What is stored of it: JSON text, the same for the same definition."""
        return msgspec.json.encode(
            msgspec.to_builtins(_StoredDefinition.of(self)), order="deterministic"
        ).decode()

    @classmethod
    def of_document(cls, name: str, document: str, version: int = 1) -> Limit:
        """The limit that was stored.

        Raises:
            InvalidInput: somebody changed the row by hand, and it means nothing any more.
        """
        try:
            stored = msgspec.json.decode(document, type=_StoredDefinition)
        except UNREADABLE as error:
            raise InvalidInput(
                f"the stored limit {name} cannot be read: {error}",
                "its row was changed by hand",
                f"`fencerow limits set {name} ...` writes it again",
            ) from None
        return cls(
            name,
            at_once=stored.at_once,
            rate=None if stored.rate is None else Rate(*stored.rate),
            hours=stored.hours,
            breaker=None if stored.breaker is None else Breaker(*stored.breaker),
            per_key=stored.per_key,
            version=max(1, version),
        )

    def __str__(self) -> str:
        said = [
            f"{self.at_once} at once" if self.at_once is not None else "",
            str(self.rate or ""),
            f"open {', '.join(self.hours)}" if self.hours else "",
            str(self.breaker or ""),
        ]
        return "; ".join(each for each in said if each) + (" (per key)" if self.per_key else "")


class _StoredDefinition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A definition as it lies in its row."""

    at_once: int | None = None
    rate: tuple[float, float, int, bool] | None = None
    hours: tuple[str, ...] = ()
    breaker: tuple[int, float, float, int] | None = None
    per_key: bool = False

    @classmethod
    def of(cls, limit: Limit) -> _StoredDefinition:
        rate, breaker = limit.rate, limit.breaker
        return cls(
            limit.at_once,
            None if rate is None else (float(rate.count), float(rate.per_s), rate.burst, rate.strict),
            limit.hours,
            None
            if breaker is None
            else (breaker.failures, float(breaker.within_s), float(breaker.stop_s), breaker.trials),
            limit.per_key,
        )


def _said_hours(given: object) -> tuple[str, ...]:
    """Each of the hours, with single blanks; what they mean is looked at later."""
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, Sequence) or not all(isinstance(each, str) for each in found):
        raise InvalidInput(
            f"the hours of a limit are {shown(given)}",
            "a text is expected, or several in a list",
            'pass hours="mon-fri 09:00-17:00 Europe/Berlin", or leave it out',
        )
    return tuple(" ".join(str(each).split()) for each in found)


def check_name(name: object) -> str:
    """The name of a limit: a plain one, `queue:` and a queue, `fleet`, or one with a key behind a slash.

    Raises:
        InvalidInput: it is none of them.
    """
    text = check_text(name, "the name of a limit", len(QUEUE) + NAME_LENGTH_MAX + KEY_LENGTH_MAX)
    if text.startswith(QUEUE):
        check_text(text.removeprefix(QUEUE), "the queue of a limit", NAME_LENGTH_MAX)
        return text
    plain, slash, key = text.partition("/")
    if slash:
        check_text(key, f"the key of the limit {plain[:60]}", KEY_LENGTH_MAX)
    if not NAME.fullmatch(plain) or len(plain) > NAME_LENGTH_MAX or (slash and plain == FLEET):
        raise InvalidInput(
            f"{ascii(text)[:80]} is no name of a limit",
            "expected letters, digits, _ . -, perhaps / and a key behind them; or queue:NAME; or fleet",
            "correct the name",
        )
    return text
