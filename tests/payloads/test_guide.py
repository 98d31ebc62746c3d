"""docs/guide/payloads.md does what it says: its code, its file and its command, from the page itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencerow import App, Config
from fencerow.core.errors import ConfigError
from fencerow.payloads import PayloadSeal, Seal, Sign
from fencerow.testing import drain
from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "guide" / "payloads.md").read_text("utf-8")
DECLARING, OWN, SOME = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
(KEYS,) = re.findall(r"^```toml\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(text: str, names: dict[str, object]) -> None:
    exec(compile(text, "payloads.md", "exec"), names)  # noqa: S102


def test_the_app_of_the_page_seals_by_the_file_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.toml").write_text(KEYS, "utf-8")
    names: dict[str, object] = {}
    run(DECLARING, names)
    app = names["app"]
    assert isinstance(app, App)
    with app:
        handle = app.submit_by_name("charge", {"card": "visa of Zoe", "cents": 5})
        drain(app)
        assert handle.result(60) == "5 from visa of Zoe"
        assert b"visa of Zoe" not in Path("app.db").read_bytes()
    assert repr(Sign.from_file("keys.toml")) == "<Sign 2026-11>"


def test_of_two_apps_on_the_same_tables_one_seals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.toml").write_text(KEYS, "utf-8")
    names: dict[str, object] = {"App": App, "Config": Config, "Seal": Seal}
    run(SOME.replace("postgresql://app@db/shop", "sqlite:///shop.db"), names)
    plain, vault = names["app"], names["vault"]
    assert isinstance(plain, App) and isinstance(vault, App)

    @plain.job
    def greet(to: str) -> None: ...

    with plain, vault:
        vault.submit_by_name("charge", {"card": "visa of Zoe"})
        greet.submit("Ada")
    stored = Path("shop.db").read_bytes()
    assert b"visa of Zoe" not in stored and b"Ada" in stored


def test_what_the_page_says_of_your_own_is_enough() -> None:
    names: dict[str, object] = {}
    run(OWN, names)
    assert isinstance(names["Service"](), PayloadSeal)  # type: ignore[operator]


@pytest.mark.parametrize(
    "text", ["", "keys = 5", "[keys]\na = 'no base64'", "broken [", '[keys]\n"a" = "YQ=="']
)
def test_a_file_without_keys_is_refused_and_never_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        Seal.from_file(path)
    assert "no base64'" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        Sign.from_file(tmp_path / "gone.toml")
