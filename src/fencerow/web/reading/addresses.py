"""The address of a request: its path and its query must be text.

A server decodes the path before we see it, and puts U+FFFD where it is no UTF-8. Many names would then be one, and
nobody sent that one. So the bytes are judged as they came.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from fencerow.web.errors import InvalidRequest

REPLACED = "\ufffd"


def check_address(scope: Scope) -> None:
    """Refuse a path or a query that is no UTF-8, or has bytes that should have been sent as `%XX`.

    Raises:
        InvalidRequest: so it is.
    """
    raw: bytes | None = scope.get("raw_path")  # not every server tells it
    if not _is_text(raw) if raw else REPLACED in scope["path"]:
        raise _refused("path")
    if not _is_text(scope["query_string"]):
        raise _refused("query")


def _is_text(sent: bytes) -> bool:
    if not sent.isascii():
        return False
    if b"%" not in sent:
        return True
    try:
        unquote_to_bytes(sent).decode()
    except UnicodeDecodeError:
        return False
    return True


def _refused(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"the {what} of the address is no text in UTF-8",
        "it would be read in two ways, or not at all",
        "write each byte of its UTF-8 that is no ASCII as %XX",
    )
