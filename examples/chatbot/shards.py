"""The migrations that bring the app's own tables, and every shard of the messages, up to date."""

from __future__ import annotations

from examples.chatbot.base import SHARDS, STEPS, app
from fencerow.migrations import Migrator


def migrate() -> list[str]:
    """Run what is missing in each database and tell which those were. May be repeated.

    A database that cannot be reached keeps the others from nothing; it is named in the error that is raised in
    the end, and the next run does what is left.
    """
    reports = [
        Migrator({"main": str(app.config.url)}, STEPS / "main").migrate(),
        Migrator({f"messages_{n}": url for n, url in enumerate(SHARDS)}, STEPS / "messages").migrate(),
    ]
    for report in reports:
        report.raise_failed()
    return [
        f"{shard.shard}: {migration}"
        for report in reports
        for shard in report.shards
        for migration in shard.ran
    ]
