"""What travels with a job beside its arguments: tags to find it by, metadata, and headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.errors import InvalidInput, PayloadTooLarge
from fencerow.core.model.value import ValueType
from fencerow.db.text import check_text, shown

TAGS_MAX = 64
Plain = str | int | float | bool | None  # a value in metadata by which jobs are found
TAG_LENGTH_MAX = 100
KEY_LENGTH_MAX = 256
LABEL_BYTES_MAX = 16 * 1024
ANYTHING = ValueType.of(Any, "metadata")


def encode_tags(tags: Sequence[str]) -> str | None:
    """A JSON array of the tags, each once, in their order; None if there are none.

    Raises:
        InvalidInput: more than 64 tags, or one that is no text of 1 to 100 characters.
    """
    if tags == []:
        return None
    if isinstance(tags, str):
        raise InvalidInput(f"tags is the text {ascii(tags)[:60]}", "a list of tags is expected", "pass [tag]")
    if not isinstance(tags, Iterable):
        raise InvalidInput(f"tags is {shown(tags)}", "a list of tags is expected", "pass [tag]")
    different = list(dict.fromkeys(check_text(tag, "a tag", TAG_LENGTH_MAX) for tag in tags))
    if len(different) > TAGS_MAX:
        raise InvalidInput(
            f"{len(different)} tags were given", f"at most {TAGS_MAX} are kept", "use fewer tags"
        )
    return msgspec.json.encode(different).decode() if different else None


def encode_metadata(metadata: Mapping[str, Any]) -> str | None:
    """A JSON object of the metadata; None if it is empty.

    Raises:
        InvalidInput: it is no mapping, or a key is no text.
        InvalidPayload: a value cannot be kept as JSON faithfully.
        PayloadTooLarge: it takes more than 16 KiB.
    """
    fields = _fields(metadata, "metadata")
    if not fields:
        return None
    return _within(ANYTHING.pack(fields, "metadata"), "metadata")


def encode_headers(headers: Mapping[str, str]) -> str | None:
    """A JSON object of the headers; None if there are none.

    Values may hold no line breaks or other control characters, because they travel on into HTTP and logs.

    Raises:
        InvalidInput: a name or value is no text, or holds characters it may not.
        PayloadTooLarge: they take more than 16 KiB.
    """
    fields = _fields(headers, "headers")
    for name, value in fields.items():
        check_text(value, f"the header {name!r}", LABEL_BYTES_MAX, empty=True)
    return _within(msgspec.json.encode(fields), "headers") if fields else None


def _fields(given: object, what: str) -> dict[str, Any]:
    if given == {}:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"{what} is of type {type(given).__name__}", "a mapping is expected", "pass a dict"
        )
    return {check_text(key, f"a key in {what}", KEY_LENGTH_MAX): value for key, value in given.items()}


def _within(raw: bytes, what: str) -> str:
    if len(raw) > LABEL_BYTES_MAX:
        raise PayloadTooLarge(
            f"{what} takes {len(raw)} bytes",
            f"at most {LABEL_BYTES_MAX} are kept",
            "pass it as an argument instead",
        )
    return raw.decode()
