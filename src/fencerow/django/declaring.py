"""From Django's tasks to declared jobs: a worker runs those whose modules were imported."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencerow.app import App, DeclaredJob
from fencerow.core.app.job_options import job_options
from fencerow.django.errors import InvalidDjangoSettings
from fencerow.django.running import handler_of_task

DECORATOR = "TASKS OPTIONS"
TAKEN = ("name", "queue", "process", "priority")


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What the jobs of a backend's tasks have in common."""

    given: Mapping[str, Any]

    @staticmethod
    def of(options: Mapping[str, Any]) -> TaskOptions:
        """Those of an entry of TASKS, unchecked: a bad one is told by `manage.py check`, and by the first enqueue."""
        return TaskOptions(dict(options))

    def check(self) -> None:
        """Whether they can be options of jobs.

        Raises:
            InvalidDjangoSettings: one says what a task says itself. DeclarationError: one cannot be used.
        """
        self.of_task(None)

    def of_task(self, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """The options of one task, which may have some of its own.

        Raises:
            InvalidDjangoSettings, DeclarationError: see `check`.
        """
        found = {"attempts_max": 1, **self.given, **(own or {})}
        for name in TAKEN:
            if name in found:
                raise InvalidDjangoSettings(
                    f"the options of tasks have {name!r}",
                    "Django's task says its name, queue and priority itself, and tasks run in threads of the worker",
                    f"take it out; @task(queue_name=..., priority=...) says what {name!r} would",
                )
        job_options(found, DECORATOR)
        return found


_tasks: dict[str, tuple[Any, TaskOptions]] = {}
_declaring = threading.Lock()


def declare(task: Any, options: TaskOptions) -> None:
    """Remember a task by the path of its function. `using()` makes more of the same; the first one counts."""
    _tasks.setdefault(task.module_path, (task, options))


def declared_job(app: App, task: Any) -> DeclaredJob[..., ..., Any, Any]:
    """The job of a task, declared in the app at the first call.

    Raises:
        DeclarationError, InvalidDjangoSettings: its options cannot be used.
    """
    path = task.module_path
    with _declaring:
        known = app.jobs.get(path)
        if known is not None:
            return known
        first, options = _tasks[path]
        given = options.of_task(getattr(first, "options", None))
        declare_in_app: Any = app.job(name=path, queue=first.queue_name, process=False, **given)
        made: DeclaredJob[..., ..., Any, Any] = declare_in_app(handler_of_task(first))
        return made


def declare_all(app: App) -> None:
    """Declare every task that was imported until now: what a worker runs."""
    for task, _ in list(_tasks.values()):
        declared_job(app, task)
