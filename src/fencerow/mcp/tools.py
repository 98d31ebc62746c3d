"""What an assistant can ask for: each a call of the same guarded verbs as the command's, told without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.client import Client
from fencerow.command.documents import instants, plain
from fencerow.core.config import CoreConfig
from fencerow.core.model.job import JobRecord
from fencerow.core.wing import Check
from fencerow.db.run import ask
from fencerow.doctor.examine import examine
from fencerow.doctor.why import why
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.operators.summaries import summaries
from fencerow.payloads.shown import told_of
from fencerow.web.dashboard.redacting import Redacted, Redactor, text_without_secrets

LIMIT_MAX = 200
ENTRIES_MAX = 200  # of a timeline, or of a log: the newest
TEXT_MAX = 8_000  # characters of one text
PAYLOADS = ("args", "result", "metadata", "headers")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools over one database. `acting`: by which the person who started the server changes something."""

    client: Client
    acting: Client
    redactor: Redactor
    config: CoreConfig
    checks: Sequence[Check] = ()

    def list_jobs(
        self,
        state: str | None = None,
        queue: str | None = None,
        name: str | None = None,
        before_id: str | None = None,
        limit: int = 20,
    ) -> Document:
        """List jobs, the newest first, without their payloads. state: waiting, queued, running, succeeded, failed or
        cancelled. The next page: before_id with the last id. limit: at most 200."""
        found = self.client.list_jobs(
            states=[state] if state else None,
            queue=queue,
            name=name,
            before_id=before_id,
            limit=max(1, min(limit, LIMIT_MAX)),
        )
        return {"jobs": [self._plain(each.name, _fields(each, without=PAYLOADS)) for each in found]}

    def show_job(self, job_id: str) -> Document:
        """Show one job: what it is, its arguments and result without secrets, its error, timeline and log. The
        beginning of an id will do."""
        wanted = self._meant(job_id)
        job, moves, log = self.client.get(wanted), self.client.timeline(wanted), self.client.logs(wanted)
        return {
            "job": self._plain(job.name, _fields(job, without=PAYLOADS)) | self._payloads(job),
            "timeline": [self._plain(job.name, plain(each)) for each in moves[-ENTRIES_MAX:]],
            "log": [self._plain(job.name, plain(each)) for each in log[-ENTRIES_MAX:]],
        }

    def why(self, job_id: str) -> Document:
        """Say why a job is not running: each condition of its claim, and whether it holds."""
        found = self.client.run(ask(why(self._meant(job_id))))
        return self._plain("", plain(found))

    def doctor(self) -> Document:
        """Check everything that can be wrong with the database, its clock and its jobs, with what to do."""
        found = examine(self.config, self.checks)
        return {"findings": [self._plain("", plain(each)) for each in found]}

    def queues(self) -> Document:
        """List the queues that hold a live job or are paused: jobs by state, how long the first due one waits."""
        found = self.client.run(summaries(finished=False))
        return {"queues": [self._plain("", instants(each.items())) for each in found.values()]}

    def retry(self, job_id: str, reason: str) -> Document:
        """Queue a finished job again: its budgets start anew. Say why; it is kept with your name."""
        wanted = self._meant(job_id)
        self.acting.revive(wanted, reason=reason)
        return {"id": wanted, "state": "queued"}

    def cancel(self, job_id: str, reason: str) -> Document:
        """Cancel a job: at once if nobody runs it, else its worker is asked. Say why; it is kept with your name."""
        wanted = self._meant(job_id)
        return {"id": wanted, "answer": self.acting.cancel(wanted, reason=reason).value}

    def approve(self, job_id: str, signal: str, yes: bool) -> Document:
        """Answer a job that waits for an approval, by the name of the signal that it waits for: yes or no."""
        wanted = self._meant(job_id)
        self.acting.signal(wanted, signal, {"yes": yes})
        return {"id": wanted, "signal": signal, "answer": yes}

    def _meant(self, job_id: str) -> str:
        return self.client.run(job_meant(parse_prefix(job_id)))

    def _payloads(self, job: JobRecord) -> Document:
        """As the dashboard shows them: without secrets; of what is sealed only that it is."""
        shown: Mapping[str, Callable[[str, Any], Any]] = {
            "args": self.redactor.arguments,
            "result": self.redactor.result,
            "metadata": self.redactor.shown,
            "headers": self.redactor.shown,
        }
        return {name: _payload(job, getattr(job, name), hide) for name, hide in shown.items()}

    def _plain(self, name: str, document: Any) -> Document:
        found: Document = _bounded(self.redactor.shown(name, document))
        return found


def _fields(record: Any, *, without: Sequence[str]) -> Document:
    return {name: value for name, value in plain(record).items() if name not in without}


def _payload(job: JobRecord, value: Any, hide: Callable[[str, Any], Any]) -> Any:
    if value is None:
        return None
    sealed = told_of(value)
    return f"({sealed})" if sealed is not None else _bounded(plain(_texts(hide(job.name, value))))


def _texts(value: Any) -> Any:
    """With words in the place of what was hidden."""
    if isinstance(value, Redacted):
        return f"({value})"
    if isinstance(value, Mapping):
        return {str(name): _texts(each) for name, each in value.items()}
    return [_texts(each) for each in value] if isinstance(value, list | tuple) else value


def _bounded(value: Any) -> Any:
    """With no text that is longer than an assistant should read."""
    if isinstance(value, Redacted):
        return f"({value})"
    if isinstance(value, dict):
        return {str(name): _bounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(each) for each in value]
    if isinstance(value, str):
        text = text_without_secrets(value)
        return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters)"
    return value
