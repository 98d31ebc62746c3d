"""Tasks of a project, for the tests of the backend."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from fencerow.django.running import current_job

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

noted: list[Any] = []


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task(queue_name="mail", priority=7)
async def greet(name: str) -> str:
    return f"hello {name}, of {await User.objects.acount()} users"


@task(takes_context=True, options={"attempts_max": 3})
def flaky(context: Any, fails: int) -> int:
    job = current_job()
    assert job is not None and job.id == context.task_result.id
    noted.append((context.attempt, len(context.task_result.errors), context.task_result.status))
    if context.attempt <= fails:
        raise ConnectionError(f"attempt {context.attempt}")
    return int(context.attempt)


@task
def broken() -> None:
    raise ValueError("this is broken")


@task
def unkeepable() -> object:
    return object()
