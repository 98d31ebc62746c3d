"""`worker --metrics`: what a worker counts, at the port of its probes, or at that of its supervisor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fencerow.core.app import JobsApp
from fencerow.core.errors import InvalidInput
from fencerow.core.worker.plain import Worker
from fencerow.supervisor.probes import ProbeAddress, ProbePage

if TYPE_CHECKING:
    from fencerow.metrics.page import Metrics

MEMBER_METRICS = "--member-metrics"
PATH = "/metrics"


def check_metrics(address: ProbeAddress | None) -> None:
    """Raises:
    InvalidInput: nobody said where they are answered.
    MissingExtra: prometheus-client is not installed.
    """
    if address is None:
        raise InvalidInput(
            "--metrics is given without --health",
            "/metrics is answered at the address of --health",
            "add --health PORT, or leave out --metrics",
        )
    from fencerow.metrics.page import check_installed  # a worker without metrics loads none of it

    check_installed()


def metrics_of(app: JobsApp, worker: Worker) -> WorkerMetrics:
    """Count from now on what this worker does."""
    from fencerow.metrics.page import Metrics
    from fencerow.metrics.settings import MetricsSettings

    metrics = Metrics(app)
    metrics.of_worker(worker.vitals)
    return WorkerMetrics(metrics, MetricsSettings.of(app.config).metrics_last_scrape_s)


class WorkerMetrics:
    """The metrics of the worker in this process, and the ways in which they are asked for."""

    def __init__(self, metrics: Metrics, last_scrape_s: float) -> None:
        self._metrics = metrics
        self._last_scrape_s = last_scrape_s

    def page(self) -> bytes:
        """For the port of the probes."""
        return self._metrics.page(database=True)

    @contextlib.contextmanager
    def told_to_supervisor(self, folder: str, number: int) -> Iterator[None]:
        """Answer the supervisor while the block lasts, and for the last scrape after it."""
        from fencerow.metrics.members import answering

        with (
            answering(Path(folder), number, lambda whole: self._metrics.page(database=whole)),
            self.until_scraped(),
        ):
            yield

    @contextlib.contextmanager
    def until_scraped(self) -> Iterator[None]:
        """After the block, wait for one more scrape, for as long as the settings say."""
        try:
            yield
        finally:
            if self._last_scrape_s > 0:
                self._metrics.wait_for_last_scrape(self._last_scrape_s)
            self._metrics.close()


@contextlib.contextmanager
def metrics_of_members() -> Iterator[tuple[Mapping[str, ProbePage], tuple[str, str]]]:
    """For a supervisor: the page of all its processes, and what their command lines say more."""
    from fencerow.metrics.members import Folder
    from fencerow.metrics.page import CONTENT_TYPE

    with Folder() as folder:
        yield {PATH: ProbePage(CONTENT_TYPE, folder.page)}, (MEMBER_METRICS, str(folder.path))


def pages_of(find: Callable[[], WorkerMetrics | None]) -> Mapping[str, ProbePage]:
    """The page at the port of the probes: empty while there is no worker yet."""
    from fencerow.metrics.page import CONTENT_TYPE

    def page() -> bytes:
        found = find()
        return b"" if found is None else found.page()

    return {PATH: ProbePage(CONTENT_TYPE, page)}
