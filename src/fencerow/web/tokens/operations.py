"""The operations on tokens: make, judge, revoke, note that one was used, forget."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.db.run import Row, Steps, execute, operation
from fencerow.web.tokens.record import TokenRecord
from fencerow.web.tokens.scope import Scope

ACTOR_LENGTH_MAX = 500


class WantedToken(msgspec.Struct, frozen=True):
    """A token to be made. `hash` is that of the token, which stays with the client; `expires_s` None: never."""

    id: str
    name: str
    hash: str
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...] | None
    expires_s: float | None


class Revoked(msgspec.Struct, frozen=True):
    """What became of a revoke: whether it was this one that counts, and the token as it stands; None: there is none."""

    done: bool
    token: TokenRecord | None


@operation(repeatable=True)
def create(wanted: WantedToken, *, actor: str | None) -> Steps[TokenRecord]:
    """Store a token, once: whoever repeats this finds what is there."""
    yield from execute(
        "create_token",
        id=wanted.id,
        name=wanted.name,
        hash=wanted.hash,
        scopes=[str(scope) for scope in wanted.scopes],
        queues=None if wanted.queues is None else list(wanted.queues),
        expires_s=wanted.expires_s,
        actor=_cut(actor),
    )
    return _record((yield from execute("read_token", id=wanted.id))[0])


@operation(alone=True, repeatable=True, writes="")
def read_all() -> Steps[list[TokenRecord]]:
    """All tokens, those of one name side by side, the newest first."""
    return list(map(_record, (yield from execute("list_tokens"))))


@operation(alone=True, repeatable=True, writes="")
def tokens_of_hashes(hashes: Sequence[str]) -> Steps[dict[str, TokenRecord]]:
    """The tokens of these hashes, by their hash, judged by the database's clock; also those that are over."""
    rows = yield from execute("tokens_of_hashes", hashes=list(hashes))
    return {str(row[0]): _record(row[1:]) for row in rows}


@operation()
def revoke(token_id: str, *, actor: str | None) -> Steps[Revoked]:
    """Let nobody pass with a token any more. Who finds it over, or finds none, has changed nothing."""
    rows = yield from execute("revoke_token", id=token_id, actor=_cut(actor))
    found = yield from execute("read_token", id=token_id)
    return Revoked(bool(rows), _record(found[0]) if found else None)


@operation(alone=True, repeatable=True)
def note_use(ids: Sequence[str], *, fresh_s: float) -> Steps[int]:
    """Note that these tokens were used, where nobody has within `fresh_s`; returns how many that were."""
    return len((yield from execute("note_use", ids=list(ids), fresh_s=fresh_s)))


@operation(alone=True, repeatable=True)
def forget(*, age_s: float, limit: int) -> Steps[int]:
    """Remove up to `limit` tokens that have been over for so long; returns how many."""
    return len((yield from execute("forget_tokens", age_s=age_s, limit=limit)))


def _record(row: Row) -> TokenRecord:
    return TokenRecord.of_document(str(row[0]))


def _cut(actor: str | None) -> str | None:
    return None if not actor else actor[:ACTOR_LENGTH_MAX]
