"""What no source file may do. Floors are in `dev.py check`."""

from __future__ import annotations

import re
import tomllib

from tests.house.tree import ROOT, python_files, short


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


def test_no_test_looks_for_a_few_digits_in_what_was_said() -> None:
    """Ids of 32 hexadecimal digits stand there, and times: by chance they contain it. Look for a word."""
    by_luck = re.compile(
        r"""b?(["'])[0-9a-fA-F]{1,7}\1 not in """
        r"(?=.*(text|out\b|err\b|body|content|page|html|log|shown|said|answer|read_|(str|repr|join)\())"
    )
    assert by_luck.search('assert "42" not in page.text') and by_luck.search("b'4f' not in path.read_bytes()")
    assert not by_luck.search('assert "visa of Ada" not in page.text')
    places = [path for path in python_files("tests") if path.name != "test_layout.py"]
    assert [short(path) for path in places if by_luck.search(path.read_text("utf-8"))] == []


def test_every_folder_of_the_package_stands_on_a_floor() -> None:
    """What no contract names may import whatever it likes, and nobody would see it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    named = set(re.findall(r"fencerow\.(\w+)", " ".join(contracts[0]["layers"])))
    folders = {path.parent.name for path in (ROOT / "src" / "fencerow").glob("*/__init__.py")}

    assert folders - named == set()
