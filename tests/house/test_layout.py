"""What no source file may do. Floors are in `dev.py check`."""

from __future__ import annotations

import re

from tests.house.tree import python_files, short


def test_nobody_decides_by_the_name_of_an_engine() -> None:
    """What is so of an engine is said by its traits; its dialect chooses the text of statements."""
    named = re.compile(r"engine\.dialect\s*(?:==|!=|in\b|not in\b)")
    assert named.search('if self._engine.dialect == "postgres":')
    assert [short(path) for path in python_files("src") if named.search(path.read_text("utf-8"))] == []


def test_nothing_is_ever_pickled() -> None:
    """Reading a row, or hearing from a child process, must run nothing."""
    unsafe = re.compile(
        r"^\s*(?:import|from) (?:c?[pP]ickle|marshal|shelve|dill|cloudpickle|multiprocessing)\b", re.MULTILINE
    )
    assert unsafe.search("import pickle") and unsafe.search("    from multiprocessing import Queue")
    assert [short(path) for path in python_files("src") if unsafe.search(path.read_text("utf-8"))] == []
