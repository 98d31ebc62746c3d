"""Labels: a worker carries some, and a job may name the one of the worker that shall take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencerow.core.errors import InvalidInput
from fencerow.db.text import check_text

LABEL_LENGTH_MAX: Final = 100
LABELS_MAX: Final = 20


def check_label(value: object, what: str) -> str:
    """A label as it is compared: the very characters.

    Raises:
        InvalidInput: it is no text of 1 to 100 characters, or has a comma, or a space at an end.
    """
    label = check_text(value, what, LABEL_LENGTH_MAX)
    if "," in label or label != label.strip():
        raise InvalidInput(
            f"{what} is {label[:60]!r}",
            "a label has no comma and no space at its ends: several are written with commas between them",
            "choose another label",
        )
    return label


def parsed_labels(text: str | None) -> tuple[str, ...]:
    """The labels of a text with commas between them, each once, in their order.

    Raises:
        InvalidInput: one cannot be used, or there are more than 20.
    """
    return () if text is None else checked_labels(part.strip() for part in text.split(","))


def checked_labels(given: Iterable[str]) -> tuple[str, ...]:
    """These labels, each once, in their order.

    Raises:
        InvalidInput: one cannot be used, or there are more than 20.
    """
    labels = tuple(dict.fromkeys(check_label(each, "a label of the worker") for each in given))
    if len(labels) > LABELS_MAX:
        raise InvalidInput(
            f"{len(labels)} labels were given",
            f"a worker carries at most {LABELS_MAX}",
            "start workers with fewer labels each",
        )
    return labels
