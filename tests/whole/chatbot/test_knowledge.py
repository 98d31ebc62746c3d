"""Sources become chunks: the same file costs nothing, and a provider that is down leaves what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencerow import State
from tests.kit.pace import PATIENCE_S
from tests.whole.chatbot.conftest import Chatbot
from tests.whole.chatbot.test_reading import SOURCES

FAQ = SOURCES / "faq.md"


async def indexed(chatbot: Chatbot, path: Path, version: int) -> Any:
    handle = await chatbot.knowledge.index.asubmit("harbour", "faq.md", str(path), version)
    await chatbot.work()
    return await handle.aresult(timeout_s=PATIENCE_S)


@pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
async def test_the_same_file_costs_no_call_and_no_write(chatbot: Chatbot) -> None:
    first = await indexed(chatbot, FAQ, 1)
    rows = chatbot.rows("SELECT * FROM chunks ORDER BY number")
    again = await indexed(chatbot, FAQ, 2)

    assert (first.outcome, again.outcome) == ("replaced", "unchanged")
    assert chatbot.world.embed_calls == 1
    assert len(rows) == first.chunks
    assert chatbot.rows("SELECT * FROM chunks ORDER BY number") == rows


async def test_an_older_version_that_comes_later_is_refused(chatbot: Chatbot, tmp_path: Path) -> None:
    older = tmp_path / "older.md"
    older.write_text("# Prices\n\nAll is free.\n")
    await indexed(chatbot, FAQ, 2)

    late = await indexed(chatbot, older, 1)

    assert late.outcome == "outdated"
    assert chatbot.world.embed_calls == 1
    assert "free" not in {row[0] for row in chatbot.rows("SELECT heading FROM chunks")}


async def test_a_provider_that_is_down_fails_the_job_and_leaves_what_was_there(
    chatbot: Chatbot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await indexed(chatbot, FAQ, 1)
    before = chatbot.rows("SELECT * FROM chunks ORDER BY number")
    newer = tmp_path / "newer.md"
    newer.write_text("# Prices\n\nA child seat costs 9 euros a day.\n")

    class Down:
        def embed(self, texts: list[str]) -> list[Any]:
            raise ConnectionError("nobody answers")

    well = chatbot.knowledge.embedder
    monkeypatch.setattr(chatbot.knowledge, "embedder", Down())
    handle = await chatbot.knowledge.index.asubmit("harbour", "faq.md", str(newer), 2)
    await chatbot.work()

    assert ((await handle.arefresh()).state, (await handle.arefresh()).failures) == (State.QUEUED, 1)
    assert chatbot.rows("SELECT * FROM chunks ORDER BY number") == before

    monkeypatch.setattr(chatbot.knowledge, "embedder", well)
    chatbot.clock.advance(60)
    await chatbot.work()
    assert (await handle.aresult(timeout_s=PATIENCE_S)).outcome == "replaced"


async def test_a_file_that_cannot_be_read_ends_in_failure(chatbot: Chatbot, tmp_path: Path) -> None:
    picture = tmp_path / "logo.png"
    picture.write_bytes(b"\x89PNG")
    handle = await chatbot.knowledge.index.asubmit("harbour", "logo.png", str(picture), 1)

    await chatbot.work()

    assert (await handle.arefresh()).state is State.FAILED
    assert (await handle.arefresh()).attempt == 1
    assert chatbot.world.embed_calls == 0
