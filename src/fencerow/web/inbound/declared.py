"""`receive_webhooks(app, name, scheme, job)`: where another system posts its webhooks, and which job takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fencerow.core.app.app import JobsApp
from fencerow.core.app.calls import Call
from fencerow.core.app.declare import DeclaredBase
from fencerow.core.errors import DeclarationError, InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.numbers import check_number
from fencerow.web.inbound.webhook import InboundWebhook

if TYPE_CHECKING:
    from fencerow.web.inbound.scheme import Headers, Scheme, Told

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
HEADER: Final = re.compile(r"[a-z0-9-]{1,64}")
HEADERS_MAX: Final = 16
REMEMBERED_S_MAX: Final = 3650 * 86_400.0
TAG: Final = "hook:"
KEPT: Final = "_hooks"  # among the attributes of the app: the core knows nothing of it


@dataclass(frozen=True, slots=True)
class Hook:
    """A place where another system posts its webhooks. `headers`: those that the job is told, in lower case."""

    name: str
    scheme: Scheme
    job: DeclaredBase[..., ..., Any, Any]
    headers: tuple[str, ...]
    remembered_s: float | None

    def call(self, told: Told, headers: Headers, carried: Mapping[str, str]) -> Call[Any]:
        """The call of the job that takes this webhook, under the sender's id. `carried` goes into the job's headers.

        Raises:
            InvalidInput: the payload cannot be kept; see its subclasses.
        """
        webhook = InboundWebhook(
            hook=self.name,
            id=told.id,
            kind=told.kind,
            payload=told.payload,
            sent_at=None if told.signed_s is None else datetime.fromtimestamp(told.signed_s, UTC),
            headers={name: ", ".join(headers[name]) for name in self.headers if name in headers},
        )
        options = {
            "key": told.id,
            "scope": f"{TAG}{self.name}",
            "key_lifetime_s": self.remembered_s,
            "tags": [f"{TAG}{self.name}"],
            "headers": carried,
        }
        return self.job.with_options(options).call(webhook)


def receive_webhooks(
    app: JobsApp,
    name: str,
    scheme: Scheme,
    job: DeclaredBase[..., ..., Any, Any],
    *,
    headers: Sequence[str] = (),
    remembered_s: Seconds | None = None,
) -> None:
    """Let another system post its webhooks at `/v1/hooks/NAME` of this app's gateway: each becomes one job.

        @app.job
        def pushed(webhook: InboundWebhook) -> None: ...

        receive_webhooks(app, "github", GitHub("GITHUB_SECRET"), pushed)

    The job takes an `InboundWebhook`, and nothing else. A webhook is answered 202 once its job is stored. One that
    comes again under its sender's id gets the same answer, and makes no second job, for `remembered_s` seconds after
    the job has ended: by default as idempotency keys, with `GitHub` for a year. `headers` are the names of further
    headers that the job is told.

    The secrets are read when a gateway is made. Programs that only run the job need none.

    Raises:
        DeclarationError: the name is taken or cannot be used, or the job does not take an `InboundWebhook`.
    """
    known: dict[str, Hook] = vars(app).setdefault(KEPT, {})
    _check_name(name, known)
    chosen = tuple(each.lower() for each in headers)
    if len(chosen) > HEADERS_MAX or not all(map(HEADER.fullmatch, chosen)):
        raise DeclarationError(
            f"the hook {name!r} is to tell of headers that have no such names",
            f"at most {HEADERS_MAX} names are expected, such as 'x-github-hook-id'",
            "correct headers=",
        )
    kept_s = scheme.remembered_s if remembered_s is None else in_seconds(remembered_s)
    if kept_s is not None:
        check_number("remembered_s", kept_s, 1.0, REMEMBERED_S_MAX)
    _check_job(name, job)
    known[name] = Hook(name, scheme, job, chosen, kept_s)


def hooks_of(app: JobsApp) -> Sequence[Hook]:
    """Those that the app has declared, in their order."""
    known: dict[str, Hook] = vars(app).get(KEPT, {})
    return tuple(known.values())


def _check_name(name: str, known: Mapping[str, Hook]) -> None:
    if not NAME.fullmatch(name):
        raise DeclarationError(
            f"the hook is called {ascii(name)[:80]}",
            "1 to 63 small letters, digits and hyphens are expected: it stands in the address",
            "choose another name",
        )
    if name in known:
        raise DeclarationError(
            f"the hook {name!r} is declared twice",
            "an address has one scheme and one job",
            "choose another name",
        )


def _check_job(name: str, job: DeclaredBase[..., ..., Any, Any]) -> None:
    example = InboundWebhook(
        name, "msg_1", "example", {"a": [1]}, datetime(2026, 1, 1, tzinfo=UTC), {"a": "b"}
    )
    try:
        job.call(example)
    except InvalidInput as error:
        raise DeclarationError(
            f"the job {job.name!r} of the hook {name!r} does not take an InboundWebhook",
            "; ".join(filter(None, (error.what, error.why))),
            "declare its function with one parameter: `webhook: InboundWebhook`",
        ) from None
