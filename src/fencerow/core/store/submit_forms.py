"""New jobs in the three forms that travel: one by its columns, several as a JSON document, many as lines of COPY.

What several have in common is written once for each template, not once for each job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from fencerow.core.db.run import Param
from fencerow.core.model.job import NewJob, Template, instant

NULL = r"\N"
# What the text form of COPY reserves, and what stands for it.
ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})

Row = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What the database says before a COPY: its time, and whether the ends of jobs are events."""

    now_us: int
    subscribed: bool


class Alike(msgspec.Struct):
    """Jobs of one template."""

    template: Template
    rows: list[Row]


def alike(jobs: Iterable[NewJob]) -> list[Alike]:
    """The jobs by their templates, in the order in which these first come."""
    found: dict[int, Alike] = {}
    for job in jobs:
        # By identity: comparing templates would cost as much as writing them.
        group = found.get(id(job.template))
        if group is None:
            group = found[id(job.template)] = Alike(job.template, [])
        group.rows.append((job.id, job.args_bytes, job.args))
    return list(found.values())


def as_parameters(job: NewJob) -> dict[str, Param]:
    """The parameters of `submit_one`."""
    return {
        **msgspec.structs.asdict(job.template),
        "id": job.id,
        "args": job.args,
        "args_bytes": job.args_bytes,
    }


def as_document(jobs: Iterable[NewJob]) -> str:
    """The document of `submit` and `resubmit`: templates, each with its jobs as [id, bytes, arguments]."""
    document = [{**msgspec.to_builtins(group.template), "jobs": group.rows} for group in alike(jobs)]
    return msgspec.json.encode(document).decode()


def as_lines(jobs: Iterable[NewJob], acceptance: Acceptance) -> str:
    """The rows of `copy_jobs`, its columns in their order."""
    parts: dict[int, tuple[str, str]] = {}
    lines: list[str] = []
    for job in jobs:
        around = parts.get(id(job.template))
        if around is None:
            around = parts[id(job.template)] = _around(job.template, acceptance)
        lines.append(f"{job.id}{around[0]}{job.args_bytes}\t{_field(job.args)}{around[1]}")
    return "".join(lines)


def _around(template: Template, acceptance: Acceptance) -> tuple[str, str]:
    """The columns between id and size, and those after the arguments."""
    now_us = acceptance.now_us
    due_us = now_us + _us(template.delay_s) if template.run_at_us is None else template.run_at_us
    expires_us = None if template.expires_s is None else now_us + _us(template.expires_s)
    before = (
        template.queue, template.name, template.priority, instant(due_us), template.attempts_max,
        template.crashes_max, template.snoozes_max, template.timeout_s, instant(expires_us),
        template.retention_s, template.scope, template.key, instant(now_us), template.submitted_by,
    )  # fmt: skip
    after = (
        template.options, template.tags, template.metadata, template.headers, template.ephemeral,
        acceptance.subscribed,
    )  # fmt: skip
    return f"\t{_fields(before)}\t", f"\t{_fields(after)}\n"


def _fields(values: Iterable[object]) -> str:
    return "\t".join(NULL if value is None else _field(str(value)) for value in values)


def _field(text: str) -> str:
    if "\\" in text or "\n" in text or "\t" in text or "\r" in text:
        return text.translate(ESCAPES)
    return text


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
