"""Every database gets its steps; one that cannot be reached is named, and done by the next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow.errors import ShardUnreachable
from tests.whole.chatbot.conftest import Chatbot


async def test_a_shard_that_is_down_is_named_and_done_later(
    chatbot: Chatbot, monkeypatch: pytest.MonkeyPatch, sqlite_path: Path
) -> None:
    folder = sqlite_path.parent / "not_mounted_yet"
    new = [f"sqlite:///{sqlite_path.parent}/new.db", f"sqlite:///{folder}/later.db"]
    monkeypatch.setattr(chatbot.shards, "SHARDS", new)

    with pytest.raises(ShardUnreachable, match="messages_1"):
        chatbot.shards.migrate()
    folder.mkdir()

    assert chatbot.shards.migrate() == ["messages_1: 0001_messages", "messages_1: 0002_when"]
    assert chatbot.shards.migrate() == []
