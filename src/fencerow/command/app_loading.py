"""From `module:name` to an application or another thing of the user's, with an answer for each way that goes wrong."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import TypeVar

from fencerow.core.app import JobsApp
from fencerow.core.errors import ConfigError, FencerowError
from fencerow.db.text import said_of

T = TypeVar("T")


def load_app(name: str | None, *, url: str | None = None) -> JobsApp:
    """Import the application, looking in the working directory first.

    With `url` it finds that in its environment, where an application that names no database looks for one.

    Raises:
        ConfigError: none was named, or it cannot be found or imported.
        FencerowError: what the application itself raised while it was declared.
    """
    if not name:
        raise ConfigError(
            "no application was named",
            "a worker runs the handlers of an application",
            "give -A module:app or FENCEROW_APP",
        )
    if url is not None:
        os.environ["FENCEROW_URL"] = url
    return loaded(name, JobsApp, "application", title="App", usual="app", arguments="")


def loaded(name: str, kind: type[T], what: str, *, title: str, usual: str, arguments: str) -> T:
    """What `module:name` names, if it is of this kind. For people: `usual = title(arguments)` would make one.

    Raises:
        ConfigError: it cannot be found or imported, or is something else.
    """
    module_name, colon, attribute = name.partition(":")
    if not module_name or (colon and not attribute):
        raise ConfigError(
            f"{ascii(name)[:100]} names no {what}",
            "expected module:name",
            f"for example -A shop.jobs:{usual}",
        )
    module = _imported(module_name)
    found = getattr(module, attribute or usual, None)
    if isinstance(found, kind):
        return found
    there = [each for each, value in vars(module).items() if isinstance(value, kind)]
    raise ConfigError(
        f"module {module_name} has no {what} {attribute or usual!r}",
        "it is not there" if found is None else f"it is of type {type(found).__name__}, not {title}",
        f"did you mean -A {module_name}:{there[0]}?"
        if there
        else f"make one with {usual} = {title}({arguments})",
    )


def look_here() -> None:
    """Let modules be found in the working directory. The installed command, unlike `python -m`, does not look there."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _imported(name: str) -> object:
    look_here()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise _not_found(name) from None
        raise _broken(name, error) from error
    except FencerowError:
        raise
    except SystemExit as error:
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _not_found(name: str) -> ConfigError:
    if "/" in name or (name.endswith(".py") and Path(name).exists()):
        dotted = ".".join(Path(name).with_suffix("").parts)
        return ConfigError(
            f"{ascii(name)[1:-1][:100]} is a file, not a module",
            "a module is named as `import` names it",
            f"write -A {dotted}:app",
        )
    modules = [path.stem for path in Path.cwd().glob("*.py")]
    close = difflib.get_close_matches(name.removesuffix(".py"), modules, n=1)
    return ConfigError(
        f"there is no module {ascii(name)[1:-1][:100]}",
        "it is neither in the working directory nor installed",
        f"did you mean -A {close[0]}:app?" if close else "check -A and the directory you are in",
    )


def _broken(name: str, error: BaseException) -> ConfigError:
    """The place in the user's code is worth more than a traceback through the import system."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and file != __file__ and "importlib" not in file:
            place = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f" at {error.filename}:{error.lineno}"
    return ConfigError(
        f"module {name} cannot be imported",
        f"{said_of(error)}{place}",
        "correct it; --debug shows the traceback",
    )
