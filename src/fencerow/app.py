"""`App`: the jobs of the core, and what the wings give to an app."""

from __future__ import annotations

from collections.abc import Mapping

from fencerow.batches.declare import DeclareBatch
from fencerow.batches.item import BatchMiddleware
from fencerow.client import Client
from fencerow.config import Config
from fencerow.core.app import Call, DeclaredJob, Draft, LocalDatabaseWarning
from fencerow.core.app.app import JobsApp
from fencerow.core.config import Defaults
from fencerow.core.telemetry import Telemetry

__all__ = ["App", "Call", "DeclaredJob", "Draft", "LocalDatabaseWarning"]


class App(JobsApp):
    """The jobs of one program and the database they are kept in.

    The database is named by `url`, else by `config`, else by FENCEROW_URL; without any it is the SQLite file
    `fencerow.db` in the working directory, with a `LocalDatabaseWarning`. Nothing is opened before it is
    needed. A SQLite file gets its tables by itself; PostgreSQL needs `fencerow migrate` once.

    `defaults` hold for all jobs, `queues` for those of a queue; what a job declares wins over both, and what
    a submit says wins over that. Close the app when done, or use it as a context manager.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database we can use.
    """

    client_type = Client
    config: Config

    def __init__(
        self,
        url: str | None = None,
        *,
        config: Config | None = None,
        schema: str | None = None,
        table_prefix: str | None = None,
        defaults: Defaults | None = None,
        queues: Mapping[str, Defaults] | None = None,
        actor: str | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        super().__init__(
            url,
            config=config,
            schema=schema,
            table_prefix=table_prefix,
            defaults=defaults,
            queues=queues,
            actor=actor,
            telemetry=telemetry,
        )
        self.batch_job = DeclareBatch(self._declarer)

    @property
    def client(self) -> Client:
        """Looks at, waits for and moves the jobs that are stored; `workers` and `mutexes` for operators."""
        made = super().client
        assert isinstance(made, Client)
        return made

    def on_batch(self, middleware: BatchMiddleware) -> BatchMiddleware:
        """Wrap every call of a batch handler: an async function of its items and of what to call next.

            @app.on_batch
            async def timed(items, call_next):
                with timer(items[0].name, len(items)):
                    await call_next()

        The first one declared is the outermost. The items are those that the handler gets, and may be told their
        outcomes here too. What it raises counts as raised by the handler: it judges the items of which nothing was
        said. One that returns without calling next leaves them to succeed with None.
        """
        self._batch_middleware.append(middleware)
        return middleware

    def pause_queue(self, queue: str, *, reason: str | None = None) -> bool:
        """Stop claims from a queue, also across restarts: see `Client.pause_queue`."""
        return self.client.pause_queue(queue, reason=reason)

    def resume_queue(self, queue: str) -> bool:
        """Let claims from a queue go on: see `Client.resume_queue`."""
        return self.client.resume_queue(queue)
