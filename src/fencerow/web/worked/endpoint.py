"""An endpoint that works jobs, as it is declared: checked once. No I/O."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from fencerow.core.errors import DeclarationError, InvalidInput
from fencerow.core.model.control import check_delay
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.value import PAYLOAD_BYTES_MAX
from fencerow.db.text import shown
from fencerow.web.webhooks.pairs import KeyPair, signer_of
from fencerow.web.webhooks.signing import WebhookSecret

ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
REPLY_S: Final = 60.0
ANSWER_S: Final = 3600.0
REPLY_BYTES_MAX_MAX: Final = 64 * 1024 * 1024
MARGIN_S: Final = 1.0
MARGIN_SHARE: Final = 0.1
PATH: Final = "/v1/worked"  # below the address of a gateway


@dataclass(frozen=True, slots=True)
class WorkedEndpoint:
    """Where the attempts of a job are sent to, and how long each wait may be. `callbacks`: the address of the gateway
    that the endpoint reaches; None: it answers in its reply alone. `silent_s`: between two heartbeats. `cancel_url`:
    where it is told of cancels."""

    url: str
    secret_env: str
    callbacks: str | None
    reply_s: float
    reply_bytes_max: int
    answer_s: float
    silent_s: float
    keeps_slot: bool
    cancel_url: str | None = None

    def signers(self) -> list[WebhookSecret | KeyPair]:
        """What signs, from the environment: one secret, or two with a blank between while one replaces the other.

        Raises:
            InvalidInput: the variable is not set, or cannot be read. Its value is not shown.
            MissingExtra: it is a key pair, and `cryptography` is not installed.
        """
        found = [signer_of(each) for each in os.environ.get(self.secret_env, "").split()]
        if not found:
            raise InvalidInput(
                f"the environment variable {self.secret_env} is not set",
                "requests to the endpoint of a job are signed by the secret that stands there",
                "set it to whsec_ and the base64 of 24 to 64 random bytes, and give the endpoint the same",
            )
        return found

    def patience_s(self, remaining_s: float | None) -> float:
        """How long to wait for the reply of an attempt that has so long: it ends before its own time does, so that
        what it came to can still be noted."""
        return self.reply_s if remaining_s is None else min(self.reply_s, before_end_s(remaining_s))

    def callback_of(self, job_id: str, attempt: int) -> str:
        """The address below which this attempt is answered."""
        return f"{self.callbacks}{PATH}/{job_id}/{attempt}"


def before_end_s(remaining_s: float) -> float:
    """How much of the time that an attempt has is left for waiting."""
    return max(0.0, remaining_s - min(MARGIN_S, MARGIN_SHARE * remaining_s))


def endpoint_of(
    url: str,
    secret_env: str,
    callbacks: str | None,
    *,
    reply_s: Seconds,
    reply_bytes_max: int,
    answer_s: Seconds,
    heartbeat_s: Seconds | None,
    keeps_slot: bool,
    cancel_url: str | None,
) -> WorkedEndpoint:
    """What a declaration says, checked; where its URL leads is checked apart.

    Raises:
        DeclarationError: something cannot be used.
    """
    if not ENV.fullmatch(str(secret_env)):
        # What was given may be the secret itself: it is not shown.
        raise _refused(
            "secret_env is no name of an environment variable", "the name, not the secret, is expected"
        )
    if callbacks is None and (heartbeat_s is not None or keeps_slot):
        raise _refused("heartbeat_s or keeps_slot was given without callbacks", "both are of later answers")
    whole_s = _seconds(answer_s, "answer_s")
    return WorkedEndpoint(
        url,
        secret_env,
        _base(callbacks),
        _seconds(reply_s, "reply_s"),
        _bytes(reply_bytes_max),
        whole_s,
        whole_s if heartbeat_s is None else _seconds(heartbeat_s, "heartbeat_s"),
        keeps_slot,
        cancel_url,
    )


def _base(callbacks: str | None) -> str | None:
    if callbacks is None:
        return None
    if not str(callbacks).startswith(("https://", "http://")):
        raise _refused(f"callbacks is {shown(callbacks)}", "the address of a gateway is expected")
    return str(callbacks).rstrip("/")


def _seconds(given: Seconds, what: str) -> float:
    try:
        return check_delay(given, what, zero=False)
    except InvalidInput as error:
        raise DeclarationError(error.what, error.why, error.fix) from None


def _bytes(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= REPLY_BYTES_MAX_MAX:
        raise _refused(
            f"reply_bytes_max is {shown(given)}", f"a number up to {REPLY_BYTES_MAX_MAX} is expected"
        )
    return given


def _refused(what: str, why: str) -> DeclarationError:
    return DeclarationError(what, why, "see docs/guide/worked-over-http.md")


DEFAULT_REPLY_BYTES_MAX: Final = PAYLOAD_BYTES_MAX
