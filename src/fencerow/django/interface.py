"""Django's tasks as they are installed: `django.tasks` since Django 6.0, before it the backport `django-tasks`.

Both have one interface. Whatever else of ours needs it takes it from here.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fencerow.errors import MissingExtra


def _installed() -> tuple[str, str]:
    """The package of the tasks, and the module that has `normalize_json`.

    Raises:
        MissingExtra: there are none.
    """
    if find_spec("django.tasks") is not None:
        return "django.tasks", "django.utils.json"
    if find_spec("django_tasks") is not None:
        return "django_tasks", "django_tasks.utils"
    raise MissingExtra(
        "this Django has no tasks",
        "django.tasks came with Django 6.0, and its backport django-tasks is not installed",
        "use Django 6.0, or: pip install django-tasks",
    )


_package, _json = _installed()
_tasks: Any = import_module(_package)
_base: Any = import_module(f"{_package}.base")
_exceptions: Any = import_module(f"{_package}.exceptions")
_signals: Any = import_module(f"{_package}.signals")

BaseTaskBackend: Any = import_module(f"{_package}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _tasks.TaskContext
TaskError: Any = _base.TaskError
TaskException: Any = _exceptions.TaskException
TaskResult: Any = _tasks.TaskResult
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
TaskResultStatus: Any = _tasks.TaskResultStatus
normalize_json: Any = import_module(_json).normalize_json
task_enqueued: Any = _signals.task_enqueued
task_finished: Any = _signals.task_finished
task_started: Any = _signals.task_started
