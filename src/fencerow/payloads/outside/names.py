"""The names of objects in a store of large payloads. What has no such name is not ours, and is never removed."""

from __future__ import annotations

import re
from secrets import token_hex
from typing import Literal

What = Literal["arguments", "result"]

ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
OBJECT = re.compile(rf"(?P<owner>{ID})/(?P<job>{ID})/(?P<what>arguments|result)-[0-9a-f]{{16}}")
PART = re.compile(r"\.[0-9a-f]{8}\.part")  # of a file of a folder that was being written
OWNER = "0-owner/database"  # the mark: it holds the id of the database whose store this is


def new_name(owner: str, job_id: str, what: What) -> str:
    """A name that no object had before."""
    return f"{owner}/{job_id}/{what}-{token_hex(8)}"


def is_name_of(name: str, job_id: str, what: What) -> bool:
    """Whether it is the whole name of such an object of that job, also of another database: it may be a copy."""
    found = OBJECT.fullmatch(name)
    return found is not None and (found["job"], found["what"]) == (job_id, what)


def job_of(name: str, owner: str) -> str | None:
    """The job to which what that database wrote under this name belongs; None: it did not write it."""
    found = OBJECT.match(name)
    if found is None or found["owner"] != owner:
        return None
    rest = name[found.end() :]
    return found["job"] if not rest or PART.fullmatch(rest) else None


def is_result(name: str) -> bool:
    """Whether an object of ours is a result, or a part of one."""
    return "/result-" in name
