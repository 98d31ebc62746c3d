"""What all schemes have in common: where their secrets are, how headers are read, and how signatures are compared."""

from __future__ import annotations

import abc
import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fencerow.core.errors import DeclarationError
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.web.inbound.errors import InboundUnfit, SecretMissing, refused
from fencerow.web.reading.strict import BOUNDS, Bounds, plain
from fencerow.web.webhooks.errors import WebhookRefusal

TOLERANCE_S: Final = 300.0
SECRETS_MAX: Final = 16
SECRET_LENGTH_MIN: Final = 8
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ID: Final = re.compile(r"[\x21-\x7e]{1,256}")
KIND: Final = re.compile(r"[\x21-\x7e]{1,100}")
TIMESTAMP: Final = re.compile(r"0|[1-9][0-9]{0,11}")

Headers = Mapping[str, Sequence[str]]  # names in lower case; the values in the order in which they came


@dataclass(frozen=True, slots=True)
class Came:
    """A webhook as it came, at this second since 1970. Its `payload` is only to be read of one that was verified."""

    headers: Headers
    body: bytes
    now_s: float
    bounds: Bounds = BOUNDS

    @property
    def payload(self) -> Any:
        """The JSON of the body.

        Raises:
            InvalidRequest: it is none, or may be read in two ways.
        """
        return plain(self.body, self.bounds)

    def one(self, name: str) -> str:
        """The value of a header that must stand there once.

        Raises:
            InboundRefused: it is missing, or comes twice.
        """
        values = self.headers.get(name, ())
        if len(values) != 1:
            how = "is missing" if not values else "comes more than once"
            raise refused(WebhookRefusal.HEADERS, f"the header {name} {how}")
        return values[0]


@dataclass(frozen=True, slots=True)
class Told:
    """What a sender says of a webhook: its id, which is the same when it comes again, and what it is about.

    `signed_s`: when it was signed, in seconds since 1970.
    """

    id: str
    kind: str
    payload: Any
    signed_s: float | None = None


class Scheme(abc.ABC):
    """How a sender signs its webhooks. `secrets` are names of environment variables: those that are set count.

    Name several to replace a secret: both are good as long as both are set. No secret stands in the object.
    """

    title: ClassVar[str]
    remembered_s: ClassVar[float | None] = None  # how long an id is remembered; None: as keys of jobs are

    def __init__(self, *secrets: str, tolerance_s: Seconds = TOLERANCE_S) -> None:
        if not 1 <= len(secrets) <= SECRETS_MAX or not all(map(VARIABLE.fullmatch, secrets)):
            raise DeclarationError(
                f"{self.title} is given {len(secrets)} names for its secrets",
                f"1 to {SECRETS_MAX} names of environment variables are expected, not what they have",
                f'{type(self).__name__}("WEBHOOK_SECRET"), and the secret in WEBHOOK_SECRET',
            )
        self.names = secrets
        self.tolerance_s = in_seconds(tolerance_s)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.names))})"

    def keys(self, environment: Mapping[str, str] = os.environ) -> Sequence[Any]:
        """What the environment has for these names, ready to verify with.

        Raises:
            SecretMissing: no variable is set, or what one has cannot be a secret. It is not repeated.
        """
        found = {name: value for name in self.names if (value := environment.get(name, "").strip())}
        if not found:
            raise SecretMissing(
                f"webhooks of {self.title} have no secret here",
                f"none of these environment variables is set: {', '.join(self.names)}",
                "set one where the gateway runs",
            )
        return [self._checked(name, value) for name, value in found.items()]

    def _checked(self, name: str, value: str) -> Any:
        key = self.key(value) if len(value) >= SECRET_LENGTH_MIN else None
        if key is None:
            raise SecretMissing(
                f"the environment variable {name} has no secret of {self.title}",
                f"what it has is shorter than {SECRET_LENGTH_MIN} characters, or not of its form",
                "take the secret as the sender shows it",
            )
        return key

    def key(self, text: str) -> Any | None:
        """A secret, ready to verify with; None: it is none of this scheme."""
        return text.encode()

    @abc.abstractmethod
    def read(self, keys: Sequence[Any], came: Came) -> Told:
        """What a webhook says of itself, once it is known to be genuine.

        Raises:
            InboundRefused: it is not. InvalidRequest: it is, and its body cannot be read. InboundUnfit: it has no id.
        """


def check_signed(keys: Sequence[bytes], signed: bytes, signatures: Sequence[str]) -> None:
    """Compare HMAC-SHA256 under each key with each signature in hex; all with all, so that the time says nothing.

    Raises:
        InboundRefused: none is right.
    """
    made = [hmac.digest(key, signed, hashlib.sha256).hex() for key in keys]
    right = [hmac.compare_digest(own, given) for own in made for given in signatures]
    if not any(right):
        raise refused(WebhookRefusal.SIGNATURE, "no signature of this webhook is right")


def check_age(signed_s: int, now_s: float, tolerance_s: float) -> None:
    """Refuse what was signed too long ago, or for later.

    Raises:
        InboundRefused: it is out of time.
    """
    if signed_s < now_s - tolerance_s:
        raise refused(WebhookRefusal.TOO_OLD, f"the webhook is more than {tolerance_s:g} s old")
    if signed_s > now_s + tolerance_s:
        raise refused(WebhookRefusal.TOO_NEW, f"the webhook is more than {tolerance_s:g} s ahead")


def id_of(given: object, where: str) -> str:
    """An id as a sender says it.

    Raises:
        InboundUnfit: it cannot be one.
    """
    if not isinstance(given, str) or not ID.fullmatch(given):
        raise InboundUnfit(
            f"the webhook has no id in {where}",
            "1 to 256 visible characters are expected, the same each time that it is sent",
            "choose the scheme that this sender follows",
        )
    return given


def kind_of(given: object) -> str:
    """What a webhook is about; empty where it says nothing that could be a name."""
    return given if isinstance(given, str) and KIND.fullmatch(given) else ""
