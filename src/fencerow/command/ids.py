"""Ids of jobs as a screen shows them."""

from __future__ import annotations

from fencerow.core.model.ids import SHAPE

END_DIGITS = 8  # as a screen shows it


def is_id(text: str) -> bool:
    """Whether it is a whole id as we write it."""
    return len(text) == len("0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e") and SHAPE.fullmatch(text) is not None


def short_id(job_id: str) -> str:
    """The end of an id, as a screen shows it: its last eight digits differ also in the ids of one submit."""
    return job_id[-END_DIGITS:]
