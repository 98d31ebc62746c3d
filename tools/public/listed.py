"""The pages of the reference: which names each has, and what belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from fencerow.errors import FencerowError
from tools.public.names import Entry, entry_of, pairs


@dataclass(frozen=True)
class Page:
    """One page: the package whose names it has, and what belongs to them."""

    name: str
    package: str
    wing: str = ""
    beside: tuple[str, ...] = ()  # modules whose `__all__` belongs here too
    handed: tuple[str, ...] = ()  # `module:Class`: reached from an object, imported by nobody
    settings: str = ""  # what the names of its settings begin with, or are
    used: str = ""  # where there is nothing to import, how it is used


PAGES = (
    Page("fencerow", "fencerow", beside=("fencerow.app", "fencerow.client")),
    Page("events", "fencerow.events", "events", settings="retention_events|retention_unread"),
    Page(
        "limits", "fencerow.limits", "limits",
        handed=("fencerow.limits.client:LimitVerbs",),
        used="`App(limits=[...])` declares limits, `Client.limits` has the verbs.",
    ),
    Page(
        "handovers", "fencerow.handovers", "handovers",
        used="`Client.handovers(receiver)` takes them and confirms them.",
    ),
    Page(
        "guards-mutex", "fencerow.guards.mutex", "guards",
        handed=("fencerow.guards.mutex.client:Mutexes",), settings="mutex_",
    ),
    Page("guards-once", "fencerow.guards.once"),
    Page("guards-replace", "fencerow.guards.replace", settings="retention_sources"),
    Page("guards-transitions", "fencerow.guards.transitions"),
    Page("migrations", "fencerow.migrations", "migrations"),
    Page(
        "schedules", "fencerow.schedules", "schedules",
        handed=("fencerow.schedules.appside:AppSchedules",),
        settings="schedules|entities_refresh_s|retention_ticks_s",
        used="`App.schedule` declares; `App.schedules` and `Client.schedules` have the verbs.",
    ),
    Page("planning", "fencerow.planning", "planning"),
    Page("relay", "fencerow.relay", "relay"),
    Page("traces", "fencerow.traces"),
    Page(
        "metrics", "fencerow.metrics", "metrics", settings="metrics_",
        used="`Metrics(app)` counts and is asked by prometheus-client; `fencerow worker --metrics` serves it.",
    ),
    Page("web-discord", "fencerow.web.discord", settings="discord_"),
    Page(
        "web", "fencerow.web", "web",
        handed=("fencerow.web.tokens.client:TokenVerbs", "fencerow.web.maintenance.client:MaintenanceVerbs"),
        settings="web_|webhook_|retention_webhooks_s",
        used="`Client.tokens` makes API tokens and revokes them; "
        "`Client.maintenance` closes the gateways for a while.",
    ),
    Page("web-remote", "fencerow.web.remote"),
    Page("web-gateway", "fencerow.web.gateway"),
    Page("batches", "fencerow.batches", "batches"),
    Page("payloads", "fencerow.payloads", "payloads"),
    Page(
        "processes", "fencerow.processes", "processes", settings="child_|suspects_|hung_",
        used="`App.job` with `process=True` and `memory_bytes_max`; see `HandlingOptions`.",
    ),
    Page(
        "operators", "fencerow.operators", "operators",
        handed=("fencerow.operators.workers:Workers",),
        used="`Client.workers` has the verbs for workers; `Client.pause_queue`, `Client.resume_queue` and "
        "`Client.paused_queues` are for queues.",
    ),
    Page(
        "retention", "fencerow.retention", "retention", settings="retention_|unknown_max_s",
        used="`retention_s` and `ephemeral` of `GivenOptions` and `GivenSubmitOptions`; every worker does the rest.",
    ),
    Page("doctor", "fencerow.doctor", "doctor", used="The two commands; with `--json` they speak to programs."),
    Page("logs", "fencerow.logs", settings="log_"),
    Page("testing", "fencerow.testing"),
    Page("proof", "fencerow_proof"),
)  # fmt: skip
# A user is given these and makes none, so how they are made is nobody's business.
GIVEN = frozenset(
    {
        "Handle",
        "Job",
        "BatchItem",
        "DeclaredJob",
        "Worker",
        "Event",
        "Workers",
        "Mutexes",
        "AppSchedules",
        "ScheduleRecord",
        "OnceRun",
        "Replacing",
    }
)
# Public by their names, for other parts of the package alone.
INSIDE = frozenset(
    {
        *("App.handlers", "App.chores", "App.wrap_engine", "Database.wrap_engine"),
        *("Client.run", "Client.outcome", "Client.stop_waiting", "Client.make_ready", "Client.submit"),
        *("Client.drain_submits",),
        *("DeclaredJob.handler", "DeclaredJob.with_options", "Backfill.handler", "Backfill.middleware"),
        *(
            "Contract.function",
            "Backoff.delay_s",
            "Backoff.to_json",
            "Backoff.from_json",
            "Defaults.merged",
        ),
        *("Config.drain_s", "Config.job_defaults", "Config.of"),
        *("Transitions.declared", "Transitions.is_reaped", "Moves.is_reaped", "BackfillStatus.of"),
        *("Job.is_committed_on", "Job.opened_transaction", "Worker.signalled"),
    }
)
INSIDE_TYPES = frozenset({"CoreConfig", "Handler", "JobOptions", "Middleware"})
SETTINGS = "Its fields are the [settings](../settings.md)."


@cache
def entries(page: Page) -> tuple[Entry, ...]:
    """The public names of a page, in the order in which their package lists them."""
    found = [
        replace(_entry(name, getattr(import_module(package), name)), package=package)
        for package, name in _listed(page)
    ]
    for told in page.handed:
        module, name = told.split(":")
        found.append(_entry(name, getattr(import_module(module), name)))
    return tuple(pairs(found))


def _listed(page: Page) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for package in (page.package, *page.beside):
        for name in getattr(import_module(package), "__all__", ()):
            if not name.startswith("__") and name not in seen:
                seen.add(name)
                yield package, name


def _entry(name: str, found: object) -> Entry:
    made = entry_of(name, found, constructed=name not in GIVEN)
    kept = tuple(member for member in made.members if member.name not in INSIDE)
    if name == "Config":
        return replace(
            made, signatures=("Config(**settings)",), members=kept, doc=f"{made.doc}\n\n{SETTINGS}"
        )
    return replace(made, members=kept)


@cache
def records(page: Page) -> tuple[Entry, ...]:
    """Records and enumerations that the names of a page take or give, and that no page has by itself."""
    return tuple(entry for reached, entry in _reached() if reached is page)


@cache
def _reached() -> tuple[tuple[Page, Entry], ...]:
    public = {entry.found for page in PAGES for entry in entries(page) if entry.kind == "class"}
    waiting = [entry for page in PAGES for entry in entries(page)]
    found: dict[type, Entry] = {}
    while waiting:
        entry = waiting.pop(0)
        for kind in [
            *entry.types.values(),
            *(each for member in entry.members for each in member.types.values()),
        ]:
            if (
                kind in public
                or kind in found
                or issubclass(kind, FencerowError)
                or kind.__name__ in INSIDE_TYPES
            ):
                continue
            made = entry_of(kind.__name__, kind)
            if made.signatures and made.signatures[0].startswith("class "):
                found[kind] = made
                waiting.append(made)
    made_by_page = [(_page_of(kind), entry) for kind, entry in found.items()]
    return tuple(sorted(made_by_page, key=lambda pair: pair[1].name))


def _page_of(kind: type) -> Page:
    fitting = [page for page in PAGES if kind.__module__.startswith(f"{page.package}.")]
    return max(fitting, key=lambda page: len(page.package))
