"""`client.tokens`: make API tokens, list them, revoke them; sync and async."""

from __future__ import annotations

from collections.abc import Iterable

import fencerow.web.tokens.operations as operations
from fencerow.core.client.base import Verbs
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.web.errors import TokenNotFound, TokenOver
from fencerow.web.tokens.operations import WantedToken
from fencerow.web.tokens.record import TokenRecord, TokenState
from fencerow.web.tokens.scope import Scope
from fencerow.web.tokens.secret import NewToken, hash_of, new_token
from fencerow.web.tokens.wanted import (
    EXPIRES_S,
    check_expiry,
    check_id,
    check_name,
    check_queues,
    check_scopes,
)


class TokenVerbs(Verbs):
    """Makes API tokens, lists and revokes them. Each method has an async twin with an `a` in front."""

    @verb
    def create(
        self,
        name: str,
        *,
        scopes: Iterable[Scope | str],
        queues: Iterable[str] | None = None,
        expires_s: Seconds | None = EXPIRES_S,
    ) -> Procedure[NewToken]:
        """Make a token for whoever is named, and return it: this once, for the database keeps its SHA-256 alone.

        Several may live under one name: make the next, give it out, and revoke the one before. `queues`: those that it
        counts for; None: all, and what belongs to no queue. It expires after `expires_s` seconds, 90 days unless you
        say otherwise; None: never. After an `OutcomeUnknown` there may be one that nobody has: revoke it.

        Raises:
            InvalidInput: a scope is unknown or there is none, the name or a queue cannot be used, `admin` is to count
                for some queues only, or `expires_s` is not from a minute to ten years.
        """
        checked_queues = check_queues(queues)
        wanted = WantedToken(
            new_id(),
            check_name(name),
            hash_of(token := new_token()),
            check_scopes(scopes, in_all_queues=checked_queues is None),
            checked_queues,
            check_expiry(expires_s),
        )
        return NewToken(token, (yield from ask(operations.create(wanted, actor=self._client.actor))))

    acreate = averb(create)

    @verb
    def known(self) -> Procedure[list[TokenRecord]]:
        """All tokens by name, the newest of each first. What was over for 30 days is removed."""
        return (yield from ask(operations.read_all()))

    aknown = averb(known)

    @verb
    def revoke(self, token_id: str) -> Procedure[TokenRecord]:
        """Let nobody pass with this token any more, and return it as it stands.

        A gateway that has just read it believes it for `web_token_cache_s` more. After an `OutcomeUnknown` repeat it:
        `TokenOver` then says that it is done.

        Raises:
            TokenNotFound: there is none of this id. TokenOver: it was revoked before, or it has expired.
            InvalidInput: this is no id.
        """
        wanted = check_id(token_id)
        revoked = yield from ask(operations.revoke(wanted, actor=self._client.actor))
        if revoked.token is None:
            raise TokenNotFound(
                f"there is no API token {wanted}",
                "nobody made it, or it was over for 30 days and was removed",
                "copy the id from `fencerow tokens list`",
            )
        if not revoked.done:
            raise _over(revoked.token)
        return revoked.token

    arevoke = averb(revoke)


def _over(token: TokenRecord) -> TokenOver:
    if token.state is TokenState.REVOKED:
        by = f" by {token.revoked_by}" if token.revoked_by else ""
        why = f"it was revoked{by} at {token.revoked_at}"
    else:
        why = f"it expired at {token.expires_at}"
    return TokenOver(
        f"API token {token.id} ({token.name}) is over already",
        why,
        "nothing is left to do: nobody passes with it",
    )
