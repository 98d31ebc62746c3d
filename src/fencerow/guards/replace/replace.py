"""`replace_for`: the rows of one source in a user's table, replaced as a whole; the newest content wins."""

from __future__ import annotations

from functools import partial

import fencerow.guards.replace.sources as sources
from fencerow.core.errors import InvalidInput
from fencerow.core.locator import Locator, check_tables
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds
from fencerow.guards.checked import STALE_S_MIN, check_key, check_seconds, owner_now
from fencerow.guards.replace.deciding import WantedContent
from fencerow.guards.replace.replacing import Replacing
from fencerow.guards.replace.user_table import UserTable
from fencerow.located import run

VERSION_MAX = 2**63 - 1


def replace_for(
    place: Locator,
    *,
    table: str,
    source_column: str,
    source: object,
    version: int | None = None,
    content_hash: str | None = None,
    owner: str | None = None,
    attempt: int | None = None,
    stale_s: Seconds = 300.0,
    wait_s: Seconds = 30.0,
) -> Replacing:
    """Replace the rows of one source in a table of yours, as a whole, once per content.

        with replace_for(app, table="chunks", source_column="source_id", source=7, content_hash=h) as replacing:
            if replacing.needed:
                replacing.insert(embed(text))

    No transaction is open in the block. A short transaction at its start looks at the content: it may be
    written already or outdated (then there is nothing to do), or somebody else may be computing it (then the
    caller waits up to `wait_s`). Otherwise it reserves the content for this caller. A caller that dies loses
    the reservation after `stale_s`, by the database's clock; a later attempt of the same owner, such as the
    same job, takes it over at once. Outside of jobs the owner is `owner` with `attempt`, a number that each
    later run raises.

    The greater `version` wins, no matter who finishes last. Without versions the later reservation wins. Give
    at least one of `version` and `content_hash`. The hash must cover all that the rows depend on: the
    content, and for example the model that computes them.

    Raises:
        InvalidInput: an argument cannot be used.
        SourceBusy: when the block is entered: another computes the same or newer rows, and did not end in time. Try
            again later.
        SourceConflict: when the block is entered: this version is written with another content, or a version is
            missing.
        UnusableTable: when the block is entered: there is no such table or column.
    """
    if version is None and content_hash is None:
        raise InvalidInput(
            "neither version nor content_hash was given",
            "they say whether the content is new, and which content is newer",
            "give at least one of them",
        )
    if version is not None:
        _check_version(version)
    known = UserTable(table, source_column)
    worker = owner_now(owner, attempt)
    wanted = WantedContent(
        target=table,
        source=check_key(_text(source), "the source"),
        version=version,
        content_hash=None if content_hash is None else check_key(content_hash, "content_hash"),
        owner=worker.name,
        attempt=worker.attempt,
        token=new_id(),
        stale_s=check_seconds(stale_s, "stale_s", STALE_S_MIN),
    )
    return Replacing(place, known, source, wanted, wait_s=check_seconds(wait_s, "wait_s", 0.0))


def forget_source(place: Locator, *, table: str, source: object, connection: object | None = None) -> bool:
    """Forget what is known of a source that is gone for good. Remove its rows yourself."""
    check_tables(place)
    look = partial(UserTable(table, "source").looked_up, place.engine.dialect)
    return run(place, sources.forget_source(table, check_key(_text(source), "the source"), look), connection)


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or abs(version) > VERSION_MAX:
        raise InvalidInput(
            f"version is {version!r}", "it is a whole number of 64 bits", "correct the version"
        )


def _text(source: object) -> str:
    if source is None or isinstance(source, (bool, float, bytes, list, dict, tuple)):
        raise InvalidInput(
            f"the source is of type {type(source).__name__}",
            "it is text, a whole number or a UUID",
            "pass the value that the source column has",
        )
    return str(source)
