"""Which names of a code base stand for Celery: its apps, and its tasks. The first look, over all files."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from fencerow.db.url import masked

SHARED = {"shared_task", "periodic_task"}
# How an app of Celery is mostly called, wherever it was made; and whose decorators look the same.
USUAL = {"app", "celery", "celery_app", "current_app"}
CELERY = {"celery", "kombu", "celery_once"}
OTHERS = {
    "invoke",
    "locust",
    "prefect",
    "airflow",
    "dramatiq",
    "huey",
    "procrastinate",
    "arq",
    "rq",
    "taskiq",
}


@dataclass
class Known:
    """The names of Celery apps, and of tasks, wherever they are used."""

    apps: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    acks_late: bool = False  # a setting says it for all tasks

    def look(self, tree: ast.Module) -> None:
        """Learn the apps of a file: `app = Celery(...)`, and the names under which one is imported."""
        for node in ast.walk(tree):
            self.acks_late |= _says_late(node)
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and last(node.value.func) == "Celery"
            ):
                self.apps |= {last(target) for target in node.targets}
            elif isinstance(node, ast.ImportFrom) and "celery" in (node.module or "").lower():
                self.apps |= {
                    each.asname or each.name
                    for each in node.names
                    if "app" in each.name or each.name == "celery"
                }

    def look_for_tasks(self, tree: ast.Module) -> None:
        """Learn the tasks of a file, when all apps are known."""
        imported = imported_from_celery(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and self.task_of(
                node, imported
            ):
                self.tasks.add(node.name)

    def task_of(self, node: ast.AST, imported: set[str]) -> ast.expr | None:
        """The decorator, or the base class, that makes a task of it."""
        if isinstance(node, ast.ClassDef):
            return next(
                (base for base in node.bases if last(base) == "Task" and _of_celery(base, imported)), None
            )
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
        for each in decorators:
            called = each.func if isinstance(each, ast.Call) else each
            if isinstance(called, ast.Name) and called.id in imported & (SHARED | {"task"}):
                return each
            if isinstance(called, ast.Attribute) and called.attr == "task":
                name = last(called.value)
                if name in self.apps or (name in imported and name in USUAL):
                    return each
        return None


def imported_from_celery(tree: ast.Module) -> set[str]:
    """What a file imports from Celery, under its own names; and what it imports that is called as most apps are."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {each.asname or each.name for each in node.names}
            first = (node.module or "").split(".")[0]
            found |= names if first in CELERY else names & USUAL if first not in OTHERS else set()
        elif isinstance(node, ast.Import):
            found |= {each.asname or each.name for each in node.names if each.name.split(".")[0] == "celery"}
    return found


def _says_late(node: ast.AST) -> bool:
    """Whether a setting, or a keyword of `conf.update`, acknowledges all tasks when they are done."""
    if isinstance(node, ast.Assign):
        names, value = [last(each).lower() for each in node.targets], node.value
    elif isinstance(node, ast.keyword):
        names, value = [(node.arg or "").lower()], node.value
    else:
        return False
    is_said = any(
        each.removeprefix("celery_").removeprefix("task_") == "acks_late" and each != "acks_late"
        for each in names
    )
    return is_said and isinstance(value, ast.Constant) and value.value is True


def _of_celery(base: ast.expr, imported: set[str]) -> bool:
    return (
        base.id in imported
        if isinstance(base, ast.Name)
        else isinstance(base, ast.Attribute) and "celery" in said(base)
    )


def last(node: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def said(node: ast.AST, limit: int = 80) -> str:
    """What stands there, on one line, cut off."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return "..."
    text = masked(text) if "://" in text else text
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
