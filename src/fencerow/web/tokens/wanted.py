"""What may be asked of a token that is made or named: refused here, before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.ids import parse_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.wanted import QUEUE_LENGTH_MAX
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text, shown
from fencerow.web.tokens.scope import Scope
from fencerow.web.tokens.secret import PREFIX

NAME_LENGTH_MAX = 100
QUEUES_MAX = 100
EXPIRES_S = 90 * DAY_S
EXPIRES_S_MIN = 60.0
EXPIRES_S_MAX = 3650 * DAY_S
SECRET = re.compile(PREFIX + r"[\w-]{16}", re.ASCII)  # a good part of one


def check_name(name: object) -> str:
    """A name for a token: whom it is for.

    Raises:
        InvalidInput: it is empty, too long, has control characters, or is a token.
    """
    _refuse_secret(name, "the name of a token", "name the program that gets it")
    return check_text(name, "the name of a token", NAME_LENGTH_MAX)


def check_id(token_id: object) -> str:
    """The id of a token.

    Raises:
        InvalidInput: it is no id. If it is a token itself, the message does not show it.
    """
    _refuse_secret(token_id, "the id of a token", "copy the id from `fencerow tokens list`")
    return parse_id(token_id)


def check_scopes(scopes: object, *, in_all_queues: bool) -> tuple[Scope, ...]:
    """The scopes in their order, each once.

    Raises:
        InvalidInput: there is none, one is unknown, or `admin` is to count for some queues only.
    """
    names = ", ".join(Scope)
    given = _listed(scopes, "scopes", f"pass a list of {names}")
    unknown = [each for each in given if not isinstance(each, str) or each not in set(Scope)]
    if unknown:
        raise InvalidInput(f"{shown(unknown[0], 40)} is no scope", f"the scopes are {names}", "correct it")
    if not given:
        raise InvalidInput(
            "a token without a scope", f"it could do nothing; the scopes are {names}", "give it one"
        )
    if Scope.ADMIN in given and not in_all_queues:
        raise InvalidInput(
            "a token with the scope admin for some queues",
            "it could make itself another token for all of them",
            "leave out the queues, or give it operate",
        )
    return tuple(scope for scope in Scope if scope in given)


def check_queues(queues: object) -> tuple[str, ...] | None:
    """The queues by name, each once; None: all.

    Raises:
        InvalidInput: there is none, there are too many, or one cannot be a queue's name.
    """
    if queues is None:
        return None
    given = _listed(queues, "queues", "pass a list of names, or None for all queues")
    names = sorted({check_text(each, "queue", QUEUE_LENGTH_MAX) for each in given})
    if not 1 <= len(names) <= QUEUES_MAX:
        raise InvalidInput(
            f"a token for {len(names)} queues", f"1 to {QUEUES_MAX} can be named", "pass None for all queues"
        )
    return tuple(names)


def check_expiry(expires_s: Seconds | None) -> float | None:
    """In how many seconds it expires; None: never.

    Raises:
        InvalidInput: it is no number from a minute to ten years.
    """
    seconds = in_seconds(expires_s)
    if seconds is None:
        return None
    try:
        check_number("expires_s", seconds, EXPIRES_S_MIN, EXPIRES_S_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, "correct expires_s; None means never") from None
    return float(seconds)


def _refuse_secret(value: object, what: str, fix: str) -> None:
    """Somebody took the token for its id or its name: it must not come back in a message."""
    if isinstance(value, str) and SECRET.search(value):
        raise InvalidInput(
            f"{what} looks like a token itself",
            "a token is a secret and belongs neither on a command line nor into a table: others may have seen it",
            f"{fix}; revoke the token if it was real",
        )


def _listed(value: object, name: str, fix: str) -> list[object]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is of type {type(value).__name__}", "a list is expected", fix)
    return list(value)
