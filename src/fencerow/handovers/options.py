"""The option `handover=` of jobs and of submits: to whom the end of a job is handed over, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, cast

from fencerow.core.app.from_arguments import computed
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.defaults import DAY_S, Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.offered import Options
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text
from fencerow.handovers.terms import DEFAULT_RECEIVER, HOLD_S, HandoverTerms

RECEIVER_LENGTH_MAX: Final = 100
KEY_LENGTH_MAX: Final = 256
HOLD_S_MAX: Final = 365 * DAY_S
HandoverKey = str | Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class HandoverTo:
    """Who is to have the end of each job, be it a success, a failure or a cancel, and confirm that he has it.

    `key`: a text, or a function of the job's arguments that gives one, or None for a job that is not handed over. Of
    one key the ends are handed over in the order of the submits. An end waits for those before it, but no longer than
    `wait_for_earlier_s` seconds from when its own job ended; what comes later than that is handed over when it comes.

    Raises:
        InvalidInput: one of these cannot be used.
    """

    receiver: str = DEFAULT_RECEIVER
    key: HandoverKey = ""
    wait_for_earlier_s: Seconds = HOLD_S

    def __post_init__(self) -> None:
        check_text(self.receiver, "the receiver of a handover", RECEIVER_LENGTH_MAX)
        if not callable(self.key):
            check_text(self.key, "the key of a handover", KEY_LENGTH_MAX)
        try:
            check_number("wait_for_earlier_s", in_seconds(self.wait_for_earlier_s), 0.0, HOLD_S_MAX)
        except ConfigError as error:
            raise InvalidInput(error.what, error.why, error.fix) from None


HandoverOption = HandoverKey | HandoverTo | Literal[False]


class GivenHandover(TypedDict, total=False):
    """The option of a job, and of `using`, that says to whom its end is handed over."""

    # the key, a function of the arguments that gives one, or HandoverTo(...); False: to nobody
    handover: HandoverOption | None


class HandoverOptions(Options):
    """What `handover=` says of a job, as `HandoverTo`; False: its end goes to nobody."""

    def said(self, given: Mapping[str, Any]) -> HandoverTo | Literal[False] | None:
        """To whom the ends go; None: nothing is said of it.

        Raises:
            InvalidInput: it cannot be used.
        """
        option: Any = given.get("handover")
        if option is None or option is False or isinstance(option, HandoverTo):
            return option
        if isinstance(option, str) or callable(option):
            return HandoverTo(
                key=cast("HandoverKey", option)
            )  # what it returns is looked at where it is called
        raise InvalidInput(
            f"handover is of type {type(option).__name__}",
            "a text, a function of the job's arguments, or HandoverTo is expected",
            'pass handover=lambda channel, **_: channel, or HandoverTo("bot", key=...)',
        )

    def functions(self, said: Any) -> Iterator[tuple[str, object]]:
        """The one that computes the key."""
        if said:
            yield "handover", said.key

    def refuse(self, agreed: HandoverTo, limits: Defaults) -> None:  # noqa: ARG002 - whatever it says
        """An ephemeral job leaves nothing behind that could be handed over later.

        Raises:
            InvalidInput: it is to be handed over.
        """
        if limits.ephemeral:
            raise InvalidInput(
                "an ephemeral job was given handover=",
                "its success is to leave nothing behind, and a handover keeps the result until it is confirmed",
                "leave out ephemeral, or handover",
            )

    def term(self, agreed: HandoverTo, args: bytes, handler: Handler) -> dict[str, Any] | None:
        """Where the end of a job with these arguments goes; None: nowhere.

        Raises:
            InvalidInput: the user's function failed, or gave something else.
        """
        key = agreed.key
        if callable(key):
            found = computed(key, "handover", args, handler.arguments)
            if found is None:
                return None
            key = check_text(found, "what the function in handover= gave", KEY_LENGTH_MAX)
        return HandoverTerms(agreed.receiver, key, in_seconds(agreed.wait_for_earlier_s)).term
