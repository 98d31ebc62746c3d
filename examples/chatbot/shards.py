"""The steps that bring the app's own tables and every shard of the messages up to date."""

from __future__ import annotations

from collections.abc import Sequence

from examples.chatbot.base import SHARDS, STEPS, app
from fencerow import Migrator, Report


def migrate() -> Report:
    """Run what is missing in each database. May be repeated; what failed is named in the report, and done by the next run."""
    databases = {f"messages_{number}": url for number, url in enumerate(SHARDS)}
    main = Migrator({"main": str(app.config.url)}, STEPS / "main").migrate()
    messages = Migrator(databases, STEPS / "messages").migrate()
    return Report((*main.shards, *messages.shards))


def told(report: Report) -> Sequence[str]:
    """A line for each database."""
    return [
        f"{each.shard}: {each.outcome}, {len(each.ran)} steps run, at {each.at}" for each in report.shards
    ]
