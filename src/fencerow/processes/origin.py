"""Where a fresh interpreter finds a declared job again: the module that declares it, or the main program's file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import msgspec

from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError, NotImportable
from fencerow.core.model.handler import Handler
from fencerow.core.worker.middleware import Middleware
from fencerow.db.text import said_of

MAIN = "__mp_main__"  # what the standard library calls a main module that was imported by a child


class DeclaredInModule(Protocol):
    """A declared job, as it is found among the globals of its module."""

    @property
    def handler(self) -> Handler: ...

    @property
    def middleware(self) -> Middleware: ...


class HandlerOrigin(msgspec.Struct, frozen=True):
    """The job `name`, declared at `qualname` or elsewhere among the globals of `module`, which lies at `path`."""

    name: str
    qualname: str
    module: str
    path: str | None = None  # only of a main program, which cannot be imported by its name


def check_served(handler: Handler, config: CoreConfig) -> None:
    """Whether child processes of a worker with these settings will find what they are to run, and the database.

    Raises:
        NotImportable: the job is not among the globals of a module.
        ConfigError: the settings name no database.
    """
    origin_of(handler)
    if config.url is None:
        raise ConfigError(
            f"job {handler.name} runs in child processes, and the settings name no database",
            "a child process opens its own connection",
            "set url",
        )


def origin_of(handler: Handler) -> HandlerOrigin:
    """How to find this handler again in another process.

    Raises:
        NotImportable: it cannot be found by importing its module.
    """
    function = handler.function
    qualname = str(getattr(function, "__qualname__", type(function).__qualname__))
    module_name = str(getattr(function, "__module__", None) or type(function).__module__)
    module = sys.modules.get(module_name)
    check_place(handler)
    if module is None or declared_in(module, handler.name, qualname) is None:
        raise _not_importable(handler, f"module {module_name} has no global that is this job")
    if module_name != "__main__":
        return HandlerOrigin(handler.name, qualname, module_name)
    if module.__spec__ is not None:  # python -m package.module: there it is importable by its name
        return HandlerOrigin(handler.name, qualname, module.__spec__.name)
    file = getattr(module, "__file__", None)
    if not file or not Path(file).is_file():
        raise _not_importable(handler, "it was typed at a prompt")
    return HandlerOrigin(handler.name, qualname, MAIN, str(Path(file).resolve()))


def check_place(handler: Handler) -> None:
    """What can be said when it is declared, before its module has come to its end.

    Raises:
        NotImportable: it is declared inside a function.
    """
    qualname = str(getattr(handler.function, "__qualname__", ""))
    if "<locals>" in qualname:
        raise _not_importable(handler, f"{qualname} is declared inside a function")


def load(origin: HandlerOrigin) -> DeclaredInModule:
    """Import the module and find the job in it.

    Raises:
        NotImportable: the import failed, or the job is not there.
    """
    try:
        module = importlib.import_module(origin.module) if origin.path is None else _main_module(origin.path)
    except Exception as error:
        raise NotImportable(
            f"module {origin.module} cannot be imported by a child process: {said_of(error)}"[:500],
            f"job {origin.name} is declared there",
            "the module must be importable without the main program",
        ) from error
    found = declared_in(module, origin.name, origin.qualname)
    if found is None:
        raise NotImportable(
            f"module {origin.module} does not declare job {origin.name} when a child process imports it",
            "it did in the worker",
            "declare it whenever the module is imported, in every process",
        )
    return found


def declared_in(module: ModuleType, name: str, qualname: str) -> DeclaredInModule | None:
    """The declared job of this name among the module's globals."""
    for candidate in _candidates(module, qualname):
        try:
            handler = getattr(candidate, "handler", None)
        except Exception:  # noqa: S112 - somebody's lazy object; it is no declared job
            continue
        if isinstance(handler, Handler) and handler.name == name:
            found: DeclaredInModule = candidate
            return found
    return None


def _candidates(module: ModuleType, qualname: str) -> Iterator[Any]:
    place: Any = module
    for part in qualname.split("."):
        place = getattr(place, part, None)
    yield place
    yield from list(vars(module).values())


def _main_module(path: str) -> ModuleType:
    """The main program's file as a module: what stands under `if __name__ == "__main__"` does not run."""
    known = sys.modules.get(MAIN)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(MAIN, path)
    assert spec is not None and spec.loader is not None, f"{path} is no Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[MAIN] = sys.modules["__main__"] = module
    spec.loader.exec_module(module)
    return module


def _not_importable(handler: Handler, why: str) -> NotImportable:
    return NotImportable(
        f"job {handler.name} cannot run in a child process: {why}",
        "a child process is a new interpreter: it finds the job by importing the module that declares it",
        "declare it as a global of a module, or without process=True",
    )
