"""Endpoints made, looked at and changed: the half of `Webhooks(client)` that knows no deliveries."""

from __future__ import annotations

from typing import Unpack

import msgspec

import fencerow.web.webhooks.endpoints as endpoints
from fencerow.core.client.base import ClientBase, Verbs
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.verb import averb, verb
from fencerow.db.numbers import check_number
from fencerow.db.run import Operation, Procedure, ask
from fencerow.db.text import check_text
from fencerow.web.errors import EndpointConflict, EndpointNotFound
from fencerow.web.webhooks.addresses import Allowed, target_of
from fencerow.web.webhooks.endpoint import (
    OVERLAP_S,
    OVERLAP_S_MAX,
    REASON_LENGTH_MAX,
    Endpoint,
    EndpointOptions,
    EndpointWanted,
    check_endpoint_name,
    wanted_of,
)
from fencerow.web.webhooks.pairs import PRIVATE, KeyPair, for_receiver, signer_of
from fencerow.web.webhooks.signing import WebhookSecret


class AddedEndpoint(msgspec.Struct, frozen=True):
    """An endpoint that was made, with the secret that its receiver needs. Of one with a key pair that is the public
    key, which is none."""

    endpoint: Endpoint
    secret: str

    def __repr__(self) -> str:
        return f"<AddedEndpoint {self.endpoint.name}>"


class EndpointVerbs(Verbs):
    """What can be done with endpoints. Each method has an async twin with an `a` in front."""

    def __init__(self, client: ClientBase, allow: Allowed | None = None) -> None:
        super().__init__(client)
        self._allow = Allowed() if allow is None else allow

    @verb
    def add(
        self,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        asymmetric: bool = False,
        **given: Unpack[EndpointOptions],
    ) -> Procedure[AddedEndpoint]:
        """Make an endpoint. It is told of jobs that are submitted from now on.

        Returns it with its secret, `whsec_...`, by which the receiver knows that a webhook is from here. It is made
        unless you pass one. With `asymmetric` it is signed with a key pair (Ed25519), of which the receiver gets the
        public key, `whpk_...`: so it can check a webhook, and make none. A key pair of your own is `whsk_...`.

        Raises:
            InvalidInput: something cannot be used. WebhookUrlRefused: webhooks may not go there.
            EndpointConflict: another endpoint has this name.
            MissingExtra: a key pair was asked for, and `cryptography` is not installed.
        """
        check_endpoint_name(name)
        wanted = wanted_of(EndpointWanted(url=url), self._checked_url(url), given)
        signer = _signer(secret, asymmetric)
        adding = endpoints.add(new_id(), name, wanted, signer.text, actor=self._client.actor)
        if not (yield from ask(adding)):
            raise EndpointConflict(
                f"there is an endpoint {name!r} already",
                "a name is one endpoint's",
                "change it, or choose another name",
            )
        return AddedEndpoint((yield from getting(name)), for_receiver(signer.text))

    aadd = averb(add)

    @verb
    def known(self) -> Procedure[list[Endpoint]]:
        """All endpoints by name, without their secrets."""
        return (yield from ask(endpoints.read()))

    aknown = averb(known)

    @verb
    def get(self, name: str) -> Procedure[Endpoint]:
        """The endpoint of this name, without its secrets.

        Raises:
            EndpointNotFound: there is none.
        """
        return (yield from getting(name))

    aget = averb(get)

    @verb
    def secrets(self, name: str) -> Procedure[list[str]]:
        """What its receiver verifies by: the current secret, and the one before while that still signs. Show them to
        nobody else. Of a key pair it is the public key, which anybody may see; the private one is never shown.

        Raises:
            EndpointNotFound: there is none.
        """
        found = yield from ask(endpoints.secrets_of(check_endpoint_name(name)))
        if not found:
            raise (yield from _unknown(name))
        return [for_receiver(each) for each in found]

    asecrets = averb(secrets)

    @verb
    def change(
        self,
        name: str,
        *,
        url: str | None = None,
        version: int | None = None,
        **given: Unpack[EndpointOptions],
    ) -> Procedure[Endpoint]:
        """Change an endpoint; what is not said stays. It counts for ends from now on, and a new URL and `timeout_s` for
        the next attempt of those under way.

        With `version`, only if it is in that version still.

        Raises:
            EndpointNotFound: there is none. InvalidInput: something cannot be used.
            EndpointConflict: it was changed meanwhile.
        """
        was = yield from getting(name)
        wanted = wanted_of(was, was.url if url is None else self._checked_url(url), given)
        expected = was.version if version is None else version
        if not (yield from ask(endpoints.change(name, expected, wanted, actor=self._client.actor))):
            raise EndpointConflict(
                f"the endpoint {name!r} is not in version {expected}",
                "somebody else has changed it",
                "look at it, and try again",
            )
        return (yield from getting(name))

    achange = averb(change)

    @verb
    def rotate(
        self,
        name: str,
        *,
        overlap_s: Seconds = OVERLAP_S,
        secret: str | None = None,
        asymmetric: bool | None = None,
    ) -> Procedure[str]:
        """Give it a new secret, and return it. For `overlap_s` seconds every webhook is signed by the old one too.

        A key pair is followed by a key pair, and its public key is returned, unless `asymmetric` says otherwise.

        Give the new one to the receiver within that time; then nothing is refused there.

        Raises:
            EndpointNotFound: there is none.
            EndpointConflict: the secret before the last rotation still signs. `retire` it first, or wait.
        """
        check_endpoint_name(name)
        if asymmetric is None:
            current = yield from ask(endpoints.secrets_of(name))
            asymmetric = bool(current) and current[0].startswith(PRIVATE)
        signer = _signer(secret, asymmetric)
        rotating = endpoints.rotate(
            name, signer.text, overlap_s=_overlap(overlap_s), actor=self._client.actor
        )
        if not (yield from ask(rotating)):
            yield from getting(name)
            raise EndpointConflict(
                f"the endpoint {name!r} has two secrets",
                "the one before the last rotation still signs",
                "retire that one first",
            )
        return for_receiver(signer.text)

    arotate = averb(rotate)

    @verb
    def retire(self, name: str) -> Procedure[bool]:
        """Let the secret before the last rotation sign no more. False: there was none.

        Raises:
            EndpointNotFound: there is none of this name.
        """
        return (yield from self._moving(name, endpoints.retire(name, actor=self._client.actor)))

    aretire = averb(retire)

    @verb
    def enable(self, name: str) -> Procedure[bool]:
        """Tell it again of ends, from now on; of one that answered 410 too. False: it was enabled.

        What ended meanwhile it is not told; what failed meanwhile can be redelivered.

        Raises:
            EndpointNotFound: there is none.
        """
        return (yield from self._moving(name, endpoints.enable(name, actor=self._client.actor)))

    aenable = averb(enable)

    @verb
    def disable(self, name: str, *, reason: str | None = None) -> Procedure[bool]:
        """Tell it nothing more. Its deliveries under way fail, and can be redelivered later. False: it was not enabled.

        Raises:
            EndpointNotFound: there is none. InvalidInput: the reason cannot be used.
        """
        if reason is not None:
            check_text(reason, "the reason", REASON_LENGTH_MAX)
        disabling = endpoints.disable(name, reason=reason, actor=self._client.actor)
        return (yield from self._moving(name, disabling))

    adisable = averb(disable)

    @verb
    def remove(self, name: str) -> Procedure[None]:
        """Forget it with its secrets; its deliveries under way end, and all of them are purged.

        Raises:
            EndpointNotFound: there is none.
        """
        if not (yield from ask(endpoints.remove(check_endpoint_name(name), actor=self._client.actor))):
            raise (yield from _unknown(name))

    aremove = averb(remove)

    # --- inside ------------------------------------------------------------------------------------

    def _checked_url(self, url: str) -> str:
        target_of(url, self._allow)
        return url

    def _moving(self, name: str, move: Operation[bool]) -> Procedure[bool]:
        """A move that changes nothing where the endpoint is there already."""
        check_endpoint_name(name)
        moved = yield from ask(move)
        if not moved:
            yield from getting(name)
        return moved


def getting(name: str) -> Procedure[Endpoint]:
    """The endpoint of this name.

    Raises:
        EndpointNotFound: there is none.
    """
    found = yield from ask(endpoints.read(check_endpoint_name(name)))
    if not found:
        raise (yield from _unknown(name))
    return found[0]


def _unknown(name: str) -> Procedure[EndpointNotFound]:
    known = [each.name for each in (yield from ask(endpoints.read()))]
    return EndpointNotFound(
        f"there is no webhook endpoint {ascii(name)[:80]}",
        f"there are {', '.join(known)[:200]}" if known else "there is none at all",
        "check the name with `fencerow webhooks list`",
    )


def _signer(given: str | None, asymmetric: bool) -> WebhookSecret | KeyPair:
    if given is not None:
        return signer_of(given)
    return KeyPair.new() if asymmetric else WebhookSecret.new()


def _overlap(overlap_s: Seconds) -> float:
    seconds = in_seconds(overlap_s)
    try:
        check_number("overlap_s", seconds, 0.0, OVERLAP_S_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    return float(seconds)
