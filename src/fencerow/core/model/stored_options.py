"""What is stored with a job beside its arguments, for the worker: a backoff of its own, the arguments' version.

One flat JSON object, or nothing: most jobs have neither.
"""

from __future__ import annotations

import msgspec

from fencerow.core.model.backoff import Backoff

NOTHING = b"null"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Version(msgspec.Struct, frozen=True):
    args_version: int = 1


class _Names(msgspec.Struct, frozen=True):
    base_s: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def encode_options(backoff: Backoff | None, args_version: int) -> str | None:
    """The text to store; None when there is nothing to say."""
    if args_version == 1:
        return None if backoff is None else backoff.to_json()
    fields = {} if backoff is None else msgspec.to_builtins(backoff)
    return msgspec.json.encode({"args_version": args_version, **fields}).decode()


def args_version_of(stored: bytes) -> int:
    """The version under which the arguments were stored. What cannot be read counts as the first."""
    if stored == NOTHING:
        return 1
    try:
        return msgspec.json.decode(stored, type=_Version).args_version
    except UNREADABLE:
        return 1


def backoff_of(stored: bytes) -> Backoff | None:
    """The job's own backoff, if it was submitted with one.

    Raises:
        ConfigError: what is stored cannot be read.
    """
    if stored == NOTHING:
        return None
    try:
        if msgspec.json.decode(stored, type=_Names).base_s is msgspec.UNSET:
            return None
    except UNREADABLE:
        pass  # told below, in the words of a backoff
    return Backoff.from_json(stored)
