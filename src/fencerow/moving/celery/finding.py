"""The second look: what each line of a file means, as far as its text tells."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from fencerow.moving.celery import rules
from fencerow.moving.celery.names import Known, imported_from_celery, last, said
from fencerow.moving.celery.note import Note, NoteLevel
from fencerow.moving.celery.rules import Rule
from fencerow.moving.celery.scheduling import beat_notes, periodic

SENDS = ("delay", "apply_async", "s", "si", "signature", "apply")
PLAIN = {
    "delay": (NoteLevel.BECOMES, "submit(...), or asubmit(...)"),
    "apply": (NoteLevel.PERSON, "call the function: it runs here and now"),
    "s": (NoteLevel.BECOMES, "call(...), as part of a flow or of submit_many"),
    "si": (NoteLevel.BECOMES, "call(...), as part of a flow or of submit_many"),
    "signature": (NoteLevel.BECOMES, "call(...), as part of a flow or of submit_many"),
}


@dataclass
class Finder(ast.NodeVisitor):
    """Goes through one file. What it found is in `notes`."""

    name: str
    known: Known
    imported: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)
    tasks: int = 0
    _task: str | None = None  # in whose body it is
    _me: str | None = None  # how that calls itself
    _atomic: int = 0  # around how many blocks of a transaction
    _after_commit: int = 0
    _sent: set[str] = field(default_factory=set)  # names that hold what a send has returned

    def look(self, tree: ast.Module) -> list[Note]:
        """All notes of the file."""
        self.imported = imported_from_celery(tree)
        self.visit(tree)
        return self.notes

    # --- tasks ----------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorator = self.known.task_of(node, self.imported)
        kept = self._task, self._me, self._atomic, self._sent
        self._sent = set()
        if decorator is not None:
            self._note_task(node, decorator)
            self._task = node.name
            self._me = node.args.args[0].arg if _is_bound(decorator) and node.args.args else None
        self._atomic = int(any("atomic" in said(each) for each in node.decorator_list))
        self.generic_visit(node)
        self._task, self._me, self._atomic, self._sent = kept

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (so `ast` calls it)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        base = self.known.task_of(node, self.imported)
        if base is not None:
            self.tasks += 1
            self._add(
                node,
                "task",
                NoteLevel.PERSON,
                f"class {node.name}({said(base)})",
                "@app.job over a function: what `run` does",
            )
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.Assign):
                    names = (
                        [each.name]
                        if isinstance(each, ast.FunctionDef)
                        else [last(target) for target in each.targets]
                    )
                    self._named(each, "option", names, rules.OPTIONS)
        self.generic_visit(node)

    def _note_task(self, node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> None:
        self.tasks += 1
        self._add(node, "task", NoteLevel.BECOMES, f"@{said(decorator, 40)} {node.name}", "@app.job")
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        for each in given:
            self._option(each)
        late = [_value(each.value) is not False for each in given if each.arg == "acks_late"]
        if not (late[0] if late else self.known.acks_late):
            self._rule(node, "pattern", rules.EARLY_ACK, node.name)

    def _option(self, given: ast.keyword) -> None:
        if given.arg is None:
            self._add(
                given.value,
                "option",
                NoteLevel.PERSON,
                f"**{said(given.value)}",
                "options that only a run shows",
            )
        elif (
            given.arg == "max_retries" and isinstance(given.value, ast.Constant) and given.value.value is None
        ):
            self._add(given.value, "option", rules.FOREVER[0], "max_retries=None", rules.FOREVER[1])
        elif given.arg == "serializer" and _value(given.value) == "pickle":
            self._add(given.value, "option", rules.PICKLE[0], "serializer='pickle'", rules.PICKLE[1])
        else:
            level, means = rules.OPTIONS.get(given.arg, (NoteLevel.PERSON, "an option of its own base class"))
            self._add(given.value, "option", level, f"{given.arg}={said(given.value, 40)}", means)

    # --- calls ----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        name = last(node.func)
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
        if name in rules.WORKFLOWS and isinstance(node.func, ast.Name) and name in self.imported:
            level, means = rules.WORKFLOWS[name]
            self._add(node, "workflow", level, said(node), means)
        if name == "AsyncResult" and ("AsyncResult" in self.imported or isinstance(node.func, ast.Attribute)):
            self._add(node, "call", NoteLevel.BECOMES, said(node), "client.handle(id), or client.get(id)")
        around = name == "on_commit"
        self._after_commit += around
        self.generic_visit(node)
        self._after_commit -= around

    def _method(self, node: ast.Call, func: ast.Attribute) -> None:
        if func.attr in SENDS and last(func.value) in self.known.tasks:
            self._send(node, func)
        elif func.attr in rules.WORKFLOWS and last(func.value) in self.known.tasks:
            level, means = rules.WORKFLOWS[func.attr]
            self._add(node, "workflow", level, said(node), means)
        elif func.attr == "send_task":
            self._add(
                node,
                "call",
                NoteLevel.PERSON,
                said(node),
                "app.submit_by_name; that app declares the job, or its contract",
            )
        elif func.attr in ("get", "join", "wait", "collect") and self._is_sent(func.value):
            level, means = (
                rules.WAITS_INSIDE if self._task else (NoteLevel.BECOMES, "handle.result(timeout_s=...)")
            )
            self._add(node, "pattern" if self._task else "call", level, said(node), means)
        elif func.attr == "revoke" and ("control" in said(func.value) or self._is_sent(func.value)):
            self._add(
                node,
                "call",
                NoteLevel.BECOMES,
                said(node),
                "client.cancel(id); a running job is asked to stop, then made to",
            )
        elif func.attr == "add_periodic_task":
            self.notes += periodic(self.name, node)
        elif func.attr == "connect" and last(func.value) in self.imported:
            self._add(
                node, "pattern", NoteLevel.PERSON, said(node), "middleware, or an event on the end of jobs"
            )
        elif func.attr == "sleep" and last(func.value) == "time" and self._task:
            self._add(
                node,
                "pattern",
                NoteLevel.PERSON,
                said(node),
                "raise Snooze(s), or job.sleep(s), hold no slot meanwhile",
            )

    def _send(self, node: ast.Call, func: ast.Attribute) -> None:
        level, means = PLAIN.get(func.attr, (NoteLevel.BECOMES, "using(...).submit(...)"))
        self._add(node, "call", level, said(node), means)
        if func.attr == "apply_async":
            for each in node.keywords:
                if each.arg is not None:
                    self._submit_option(each)
        if func.attr in ("delay", "apply_async"):
            if self._after_commit:
                self._rule(node, "pattern", rules.AFTER_COMMIT, said(node))
            elif self._atomic:
                self._rule(node, "pattern", rules.BEFORE_COMMIT, said(node))

    def _submit_option(self, given: ast.keyword) -> None:
        assert given.arg is not None
        level, means = rules.SUBMIT_OPTIONS.get(given.arg, (NoteLevel.PERSON, "an option of the broker"))
        delay = _value(given.value)
        if given.arg == "countdown" and isinstance(delay, int | float) and delay > rules.VISIBILITY_S:
            level, means = rules.FAR
        self._add(given.value, "option", level, f"{given.arg}={said(given.value, 40)}", means)

    def _is_sent(self, node: ast.expr) -> bool:
        """Whether it is what a send has returned."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and last(node.func.value) in self.known.tasks:
                return node.func.attr in ("delay", "apply_async")
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("delay", "apply_async"):
                return isinstance(node.func.value, ast.Call) and last(node.func.value.func) in rules.WORKFLOWS
            return (isinstance(node.func, ast.Call) and last(node.func.func) in rules.WORKFLOWS) or last(
                node.func
            ) == "AsyncResult"
        return isinstance(node, ast.Name) and node.id in self._sent

    # --- what is kept ---------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._is_sent(node.value):
            self._sent |= {last(target) for target in node.targets}
        for target in node.targets:
            self._setting(target, node.value)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (
            self._me is not None
            and isinstance(node.value, ast.Name)
            and node.value.id == self._me
            and node.attr in rules.SELF
        ):
            level, means = rules.SELF[node.attr]
            self._add(node, "call", level, said(node), means)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        around = any(
            "atomic" in said(each.context_expr) or said(each.context_expr).endswith(".begin()")
            for each in node.items
        )
        self._atomic += around
        self.generic_visit(node)
        self._atomic -= around

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.generic_visit(node)

    def _setting(self, target: ast.expr, value: ast.expr) -> None:
        """`app.conf.x = ...` and `CELERY_X = ...`."""
        if isinstance(target, ast.Attribute) and last(target.value) == "conf":
            self._note_setting(target, target.attr, value)
        elif isinstance(target, ast.Name) and target.id.startswith(("CELERY", "BROKER_")):
            self._note_setting(target, target.id, value)

    def _note_setting(self, node: ast.expr, written: str, value: ast.expr) -> None:
        name = written.lower().removeprefix("celery_")
        name = rules.OLD_SETTINGS.get(name, name)
        if name == "beat_schedule":
            self.notes += beat_notes(self.name, value)
        elif name in ("task_serializer", "accept_content", "result_serializer"):
            rule = rules.PICKLE if "pickle" in said(value, 400) else (NoteLevel.BECOMES, "nothing: JSON")
            self._add(node, "setting", rule[0], f"{written} = {said(value, 40)}", rule[1])
        elif name == "broker_transport_options":
            means = "nothing: who dies loses its lease after lease_s, and its jobs run again"
            self._add(node, "setting", NoteLevel.BECOMES, f"{written} = {said(value, 40)}", means)
        elif name in rules.SETTINGS:
            level, means = rules.SETTINGS[name]
            self._add(node, "setting", level, f"{written} = {said(value, 40)}", means)

    def _named(self, node: ast.stmt, kind: str, names: list[str], table: Mapping[str, Rule]) -> None:
        for name in names:
            if name in table:
                self._rule(node, kind, table[name], name)

    def _rule(self, node: ast.AST, kind: str, rule: Rule, found: str) -> None:
        self._add(node, kind, rule[0], found, rule[1])

    def _add(self, node: ast.AST, kind: str, level: NoteLevel, found: str, means: str) -> None:
        self.notes.append(Note(self.name, getattr(node, "lineno", 0), kind, level, found, means))


def _is_bound(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and any(
        each.arg == "bind" and _value(each.value) is True for each in decorator.keywords
    )


def _value(node: ast.expr) -> object:
    """A constant, also a product of some; None: it is none that the text tells."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _value(node.left), _value(node.right)
        if (
            isinstance(left, int | float)
            and isinstance(right, int | float)
            and abs(left) < 1e9
            and abs(right) < 1e9
        ):
            return left * right
    return None
