"""The error for a job that is not declared here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from fencerow.core.errors import UnknownJob
from fencerow.db.text import amount


def unknown_job(name: str, known: Sequence[str]) -> UnknownJob:
    """The error for a name that is none of these; the closest of them are told."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return UnknownJob(
        f"no job named {ascii(name)[:80]} is declared here",
        f"did you mean {' or '.join(close)}?"
        if close
        else f"{amount(len(known), 'job is', 'jobs are')} declared",
        "check the name, or that the module that declares it is imported",
    )
