"""Database URLs."""

from __future__ import annotations

import pytest

from fencerow.db.url import PostgresUrl, SqliteUrl, masked, parse_url
from fencerow.errors import UrlError


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///a%20b.db", "a b.db"),
        ("SQLite+aiosqlite:///jobs.db", "jobs.db"),
    ],
)
def test_sqlite_urls(url: str, path: str) -> None:
    assert parse_url(url) == SqliteUrl(path)


@pytest.mark.parametrize("start", ["postgres:", "postgresql:", "postgresql+asyncpg:", "postgresql+psycopg2:"])
def test_postgres_urls_in_every_spelling(start: str) -> None:
    assert parse_url(f"{start}//u:p@h:5432,h2/d?sslmode=require") == PostgresUrl(
        "postgresql://u:p@h:5432,h2/d?sslmode=require"
    )


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("", "FENCEROW_URL"),
        ("mysql://u:hunter2@h/d", "postgresql://"),
        ("sqlite://:memory:", "sqlite:///fencerow.db"),
        ("sqlite:///:memory:", "sqlite:///fencerow.db"),
        ("sqlite://", "sqlite:///fencerow.db"),
        ("sqlite://jobs.db", "use sqlite:///jobs.db"),
        ("sqlite:jobs.db", "use sqlite:///jobs.db"),
        ("sqlite://u:hunter2@h/jobs.db", "sqlite:///fencerow.db"),
        ("sqlite:///a.db?mode=ro", "sqlite:///file.db"),
        ("sqlite:///a%00.db", "sqlite:///file.db"),
        ("jobs.db", "use sqlite:///jobs.db"),
        ("host=h password=hunter2", "postgresql://"),
        ("host=h;password='hunter2'", "postgresql://"),
        ("psql://h/d", "postgresql://"),
        ("postgresql:h", "postgresql://"),
        ("postgresql://u:hunter2@h/d d", "%20"),
    ],
)
def test_other_urls_are_refused_with_the_nearest_form_and_without_secrets(url: str, fix: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_url(url)

    assert fix in caught.value.fix
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@h/d",
        "postgresql://u:a/b@hunter2@h/d",
        "postgresql://h/d?user=u&password=hunter2&x=1",
        "host=h password='hunter2 \\' hunter2' user=u",
        "host=h sslpassword = hunter2",
        "u:hunter2@x.db",
        "postgresql://h/d?password=a hunter2's",
    ],
)
def test_a_password_never_shows(url: str) -> None:
    assert "hunter2" not in masked(url)
    assert "hunter2" not in repr(PostgresUrl(url)) + str(PostgresUrl(url))
