"""What a gateway believes of tokens for a few seconds. Bounded, and wrong tokens push out no right one."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from fencerow.web.tokens.scope import Grant

ENTRIES_MAX = 4096  # of each kind


class TokenAnswer(NamedTuple):
    """What was read of a token: whom it lets pass, or nobody; and until when, by this process's clock, that counts."""

    grant: Grant | None
    until_s: float


class KeptAnswers:
    """Answers by the hash of the token; those that were asked for longest ago make room for new ones."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._right: OrderedDict[str, TokenAnswer] = OrderedDict()
        self._wrong: OrderedDict[str, TokenAnswer] = OrderedDict()

    def get(self, digest: str, now_s: float) -> TokenAnswer | None:
        """The answer that still counts."""
        for kind in (self._right, self._wrong):
            if (answer := kind.get(digest)) is not None and now_s < answer.until_s:
                kind.move_to_end(digest)
                return answer
        return None

    def put(self, digest: str, answer: TokenAnswer) -> None:
        """Keep it in the place of what was known before."""
        kind, other = (self._wrong, self._right) if answer.grant is None else (self._right, self._wrong)
        other.pop(digest, None)
        kind[digest] = answer
        kind.move_to_end(digest)
        if len(kind) > self._entries_max:
            kind.popitem(last=False)

    def was_right(self, digest: str) -> bool:
        """Whether it let somebody pass when it was read last, however long ago."""
        return digest in self._right
