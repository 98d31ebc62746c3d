"""`Metrics`: what Prometheus is told of an app's process and its database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fencerow.core.answering import answer
from fencerow.core.app import JobsApp
from fencerow.core.config import CoreConfig
from fencerow.core.errors import MissingExtra
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.db.engine import Engine
from fencerow.metrics.counting import Counting
from fencerow.metrics.looker import MetricsLooker
from fencerow.metrics.looking import look
from fencerow.metrics.settings import MetricsSettings
from fencerow.metrics.zeros import Zeros

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@answer
class Metrics:
    """Counts what this process does from now on, and looks at the database when it is asked, every 10 s at most.

    It is a collector of prometheus-client: `REGISTRY.register(Metrics(app))` adds ours to a program's own metrics.
    `page()` is the text that a scrape gets. Safe from any thread. Make one for each app, before its workers.

    Raises:
        MissingExtra: prometheus-client is not installed.
    """

    def __init__(self, app: JobsApp) -> None:
        check_installed()
        settings = MetricsSettings.of(app.config)
        self._counting = Counting(app.telemetry, settings.metrics_labels_max)
        self._database = DatabaseMetrics(lambda: app.engine, app.config)
        self._vitals: Callable[[], Vitals] | None = None
        self._last_scraped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Count no more. It may be repeated."""
        self._counting.close()

    def of_worker(self, vitals: Callable[[], Vitals]) -> None:
        """From now on tell how this worker is, too: `metrics.of_worker(worker.vitals)`."""
        self._vitals = vitals

    def collect(self) -> Iterator[Family]:
        """All metrics, as prometheus-client asks a collector for them."""
        yield from self.collect_process()
        yield from self._database.collect()

    def collect_process(self) -> Iterator[Family]:
        """Those that this process counts. The database is not asked."""
        from fencerow.metrics.families import counted_families, worker_families  # with the library

        yield from counted_families(self._counting.snapshot())
        if self._vitals is not None:
            yield from worker_families(self._vitals())

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry must not look at the database while the collector is registered."""
        return ()

    def page(self, *, database: bool = True) -> bytes:
        """The metrics in the text format of Prometheus; without those of the database, if so."""
        has_ended = self._vitals is not None and self._vitals().phase is Phase.ENDED  # before it is counted
        text = text_of(self.collect() if database else self.collect_process())
        if has_ended:
            self._last_scraped.set()
        return text

    def wait_for_last_scrape(self, within_s: Seconds) -> bool:
        """Wait until somebody has asked for `page` since the worker ended; false if nobody did in so many seconds."""
        return self._last_scraped.wait(in_seconds(within_s))


class DatabaseMetrics:
    """What is seen of the database alone, for a process that counts nothing. Safe from any thread."""

    def __init__(self, engine: Callable[[], Engine], config: CoreConfig) -> None:
        check_installed()
        settings = MetricsSettings.of(config)
        self._labels_max = settings.metrics_labels_max
        self._zeros = Zeros(self._labels_max)
        self._looker = MetricsLooker(
            lambda: look(engine(), settings),
            interval_s=settings.metrics_look_s,
            patience_s=settings.metrics_patience_s,
        )

    def collect(self) -> Iterator[Family]:
        """What the last look saw."""
        from fencerow.metrics.families import database_families

        return database_families(self._looker.found(), self._labels_max, self._zeros)

    def page(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return text_of(self.collect())


def text_of(families: Iterable[Family]) -> bytes:
    """Metrics in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Made(families))
    return generate_latest(registry)


class _Made:
    """A collector of families that are made already."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def check_installed() -> None:
    """Raises:
    MissingExtra: prometheus-client is not installed.
    """
    if find_spec("prometheus_client") is None:
        raise MissingExtra(
            "metrics need prometheus-client",
            "it comes with an extra, and is not installed",
            "pip install 'fencerow[prometheus]'",
        )
