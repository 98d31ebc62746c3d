"""Importing the package is cheap, and what is loaded later is what editors and type checkers were told."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.house.tree import ROOT

MODULES_MAX = 250  # beside those of Python's own library, whose number is each release's own
# 185 modules of that and 32 MiB on one machine: interpreters, C libraries and kernels differ by more than we add.
STANDARD_MAX = 280
RESIDENT_KIB_MAX = 48 * 1024
LOOKS = 3  # where the system puts the memory of a process is chance, and worth half a MiB: the least counts
LAZY = (
    "fencerow",
    "fencerow.batches",
    "fencerow.events",
    "fencerow.turns",
    "fencerow.guards.mutex",
    "fencerow.guards.once",
    "fencerow.guards.replace",
    "fencerow.guards.transitions",
    "fencerow.limits",
    "fencerow.migrations",
    "fencerow.planning",
    "fencerow.relay",
    "fencerow.web",
    "fencerow_proof",
)
AT_THE_TOP_MAX = 32


def loaded(statement: str) -> tuple[set[str], int]:
    """Which modules a fresh interpreter has loaded after a statement, and the most memory that it took, in KiB."""
    status = "open('/proc/self/status').read().split('VmHWM:')[1].split()[0]"  # `getrusage` counts the parent's too
    code = f"import sys\n{statement}\nprint({status}, *sys.modules)"
    env = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    size, *modules = done.stdout.split()
    return set(modules), int(size)


def test_who_submits_loads_neither_worker_nor_driver() -> None:
    modules, resident_kib = loaded("from fencerow import App")
    for _ in range(LOOKS):  # the first one compiles what nobody has imported yet, which takes memory too
        if resident_kib > RESIDENT_KIB_MAX:
            modules, resident_kib = loaded("from fencerow import App")
    standard = {each for each in modules if each.partition(".")[0] in sys.stdlib_module_names}

    assert len(modules - standard) <= MODULES_MAX
    assert len(standard) <= STANDARD_MAX
    assert resident_kib <= RESIDENT_KIB_MAX
    assert modules.isdisjoint({"psycopg", "fencerow.core.worker.worker", "fencerow.guards.mutex.mutex"})


def test_the_rest_comes_when_it_is_used() -> None:
    modules, _ = loaded(
        "import fencerow; fencerow.Worker; fencerow.errors.Busy; from fencerow.guards.mutex import Mutex"
    )

    assert {"fencerow.core.worker.worker", "fencerow.guards.mutex.mutex"} <= modules
    assert "fencerow.guards.once.effect" not in modules


def test_the_command_of_a_worker_loads_no_other() -> None:
    wanted = "import click; context = click.Context(root); assert root.get_command(context, 'worker')"
    modules, _ = loaded(f"from fencerow.cli.main import root; {wanted}")
    everything, _ = loaded("from fencerow.cli.main import root; root.load()")

    rare = {"fencerow.bench.run", "fencerow_proof.commands", "fencerow.events.commands", "fencerow.cli.jobs"}
    assert modules.isdisjoint(rare)
    assert rare <= everything


def test_no_command_on_sqlite_loads_the_driver_of_postgresql(tmp_path: Path) -> None:
    modules, _ = loaded(
        f"""
import contextlib, io, click
from fencerow.cli.main import OFTEN, root, run
assert all(root.get_command(click.Context(root), name) for name in OFTEN)
with contextlib.redirect_stdout(io.StringIO()):
    assert run(["migrate", "--url", "sqlite:///{tmp_path / "jobs.db"}"]) == 0
import fencerow.core.worker.worker
"""
    )

    assert "fencerow.db.sqlite" in modules
    assert modules.isdisjoint({"psycopg", "psycopg_pool"})


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_are_told_the_same(package: str) -> None:
    tree = ast.parse((ROOT / "src" / Path(*package.split(".")) / "__init__.py").read_text("utf-8"))
    (said,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.name: node.module
        for node in said.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    table = next(node for node in ast.walk(said) if isinstance(node, ast.Dict))
    homes = {
        str(key.value): str(value.value)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }
    module = import_module(package)
    modules = {name: home for name, home in homes.items() if home == f"{package}.{name}"}

    assert homes == {**told, **modules}
    assert set(module.__all__) - {"__version__"} == set(homes) - set(modules)
    assert all(
        getattr(module, name) is getattr(import_module(home), name)
        for name, home in homes.items()
        if name not in modules
    )


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        import_module("fencerow").Nonsense  # noqa: B018


def test_few_names_stand_at_the_top() -> None:
    assert len(import_module("fencerow").__all__) <= AT_THE_TOP_MAX
