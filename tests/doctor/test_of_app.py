"""`doctor -A` looks at what only the code of an application knows: a store for large payloads that no setting names."""

from __future__ import annotations

from pathlib import Path

from fencerow import App
from fencerow.payloads import FolderStore
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli = command_line._clean, command_line.cli  # fixtures

SHOP = """
from fencerow import App
from fencerow.payloads import FolderStore

class Broken(FolderStore):
    def get(self, name, bytes_max):
        raise RuntimeError

plain = App("sqlite:///jobs.db")
app = App("sqlite:///jobs.db", outside=FolderStore("large"))
broken = App("sqlite:///jobs.db", outside=Broken("large"))
"""


def found(cli: Cli, tmp_path: Path, name: str) -> list[str]:
    (tmp_path / "shop.py").write_text(SHOP)
    told = cli("doctor", "-A", f"shop:{name}", "--json").json["findings"]
    return [each["found"] for each in told if each["name"] == "payloads outside"]


def test_the_store_of_the_application_is_looked_at(cli: Cli, tmp_path: Path) -> None:
    with App("sqlite:///jobs.db", outside=FolderStore("large")) as app:
        app.job(note).submit("x" * 100_000)

    assert found(cli, tmp_path, "plain") == []
    assert found(cli, tmp_path, "app") == ["1 object, each of a job"]


def test_what_a_store_raises_hides_no_other_check(cli: Cli, tmp_path: Path) -> None:
    with App("sqlite:///jobs.db") as app:
        app.check_or_create()

    assert found(cli, tmp_path, "broken") == ["this check broke: RuntimeError"]
    assert "limits" in cli("doctor", "-A", "shop:broken").out


def note(text: str) -> None: ...
