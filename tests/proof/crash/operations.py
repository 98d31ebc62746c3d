"""Which functions of a module make operations, so that none is forgotten among the cases."""

from __future__ import annotations

from fencerow.db import run


def is_operation(found: object) -> bool:
    """Whether `@operation` made it; another wrapper, such as that of a public function, is none."""
    code = getattr(found, "__code__", None)
    return code is not None and code.co_filename == run.__file__ and hasattr(found, "__wrapped__")
