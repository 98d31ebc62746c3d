"""What the chore of relays does at its looks: it makes each known when that is needed, and tells what each has met."""

from __future__ import annotations

from pathlib import Path

import pytest

import fencerow.relay.relays as relays
from fencerow import App
from fencerow.db.run import Operation
from fencerow.relay import KafkaTopic, relay_out
from fencerow.relay.chore import RelayChore, declared_by
from tests.relay.stage import app_at


@pytest.fixture
def lite(migrated_path: Path) -> App:
    app = app_at(f"sqlite:///{migrated_path}")
    for name in ("a", "b", "c"):
        relay_out(app, name, topics=["t"], to=KafkaTopic("127.0.0.1:1", "t"))
    return app


async def test_a_relay_is_made_known_at_the_start_and_after_its_removal_and_else_only_renewed(
    lite: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    know = relays.know

    def noted(name: str, direction: str, place: str) -> Operation[None]:
        told.append(name)
        return know(name, direction, place)

    monkeypatch.setattr(relays, "know", noted)
    chore = RelayChore(declared_by(lite))
    for _ in range(3):
        await chore.tick()
        chore._renew_at = 0.0
    await lite.engine.arun(relays.remove("b"))

    for _ in range(2):
        await chore.tick()
        chore._renew_at = 0.0

    assert told == ["a", "b", "c", "b"]
    assert {each.name: each.readers for each in await lite.engine.arun(relays.listed())} == dict.fromkeys(
        "abc", 1
    )
    await chore.end(1.0)
    await lite.aclose()


async def test_what_each_relay_has_met_is_told(
    lite: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chore = RelayChore(declared_by(lite))
    await chore.tick()
    assert chore._running is not None
    for each, error in zip(
        chore._running, (OSError("a is gone"), KeyError("b is wrong"), OSError("c is gone")), strict=True
    ):

        async def look(error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(each, "look", look)

    with pytest.raises(KeyError, match="b is wrong"):
        await chore.tick()

    assert [line for line in ("a is gone", "c is gone") if line in caplog.text] == ["a is gone", "c is gone"]
    assert "the relay a has met" in caplog.text and "b is wrong" not in caplog.text
    await chore.end(1.0)
    await lite.aclose()
