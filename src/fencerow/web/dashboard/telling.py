"""What became of a press, carried to the next page in a cookie that is read once."""

from __future__ import annotations

import base64

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.db.text import shortened
from fencerow.web.dashboard.screen import PressAnswer
from fencerow.web.gateway.problem import problem_of

COOKIE = "told"
KEPT_S = 60
TEXT_MAX = 600


class KeptSentence(msgspec.Struct, frozen=True, array_like=True):
    """A sentence for whoever pressed; `refused`: nothing was changed, because an error was met."""

    text: str
    changed: bool
    refused: bool = False

    @property
    def told(self) -> PressAnswer:
        """As an action says it."""
        return PressAnswer(self.text, self.changed)


def refusal(error: FencerowError, request_id: str) -> KeptSentence:
    """What is told of an error: no host, role or file of the database."""
    problem = problem_of(error, request_id)
    return KeptSentence(f"{problem.detail}. {problem.fix}".strip(" ."), changed=False, refused=True)


def packed(kept: KeptSentence) -> str:
    """As a cookie."""
    short = msgspec.structs.replace(kept, text=shortened(kept.text, TEXT_MAX))
    return base64.urlsafe_b64encode(msgspec.json.encode(short)).decode()


def unpacked(cookie: str | None) -> KeptSentence | None:
    """From a cookie; None if there is none of ours."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cookie or ""), type=KeptSentence)
    except (ValueError, msgspec.DecodeError):
        return None
