"""A submit with `connection=` of Django's is in the `atomic()` block, and goes with it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection as default
from django.db import connections, transaction
from django.db.utils import DatabaseError

from fencerow.django.following import DjangoApp
from fencerow.errors import InvalidInput, OtherDatabase, UnusableConnection
from fencerow.testing import submitted


class Undone(Exception):
    """Ends a block."""


@pytest.fixture
def job(app: DjangoApp) -> Any:
    if "mail" not in app.jobs:

        @app.job(name="mail")
        def mail(to: str) -> None:
            """Never run here."""

    return app.jobs["mail"]


def test_it_is_committed_and_rolled_back_with_the_block(alias: str, app: DjangoApp, job: Any) -> None:
    with transaction.atomic(using=alias):
        kept = job.using(connection=connections[alias]).submit("ann")
        assert submitted(app) == []
    with pytest.raises(Undone), transaction.atomic(using=alias):
        job.using(connection=connections[alias]).submit("bob")
        raise Undone

    assert [each.id for each in submitted(app)] == [kept.id]


def test_an_inner_block_takes_its_own_back(alias: str, app: DjangoApp, job: Any) -> None:
    """Also as the first thing of the outer block, where Django has not sent a BEGIN yet."""
    with transaction.atomic(using=alias):
        with pytest.raises(Undone), transaction.atomic(using=alias):
            job.using(connection=connections[alias]).submit("bob")
            raise Undone
        with pytest.raises(InvalidInput):  # refused at the door, and the block goes on
            job.using(connection=connections[alias], delay_s=-1).submit("eve")
        kept = job.using(connection=connections[alias]).submit("ann")

    assert [each.id for each in submitted(app)] == [kept.id]


def test_without_a_block_it_is_refused(alias: str, app: DjangoApp, job: Any) -> None:
    with pytest.raises(UnusableConnection, match="no transaction is open"):
        job.using(connection=connections[alias]).submit("ann")

    assert submitted(app) == []


def test_a_block_that_must_be_rolled_back_is_refused(alias: str, app: DjangoApp, job: Any) -> None:
    with transaction.atomic(using=alias):
        with pytest.raises(DatabaseError), transaction.atomic(using=alias, savepoint=False):
            connections[alias].cursor().execute("SELECT nonsense FROM nowhere")
        with pytest.raises(UnusableConnection, match="failed transaction"):
            job.using(connection=connections[alias]).submit("ann")

    assert submitted(app) == []


def test_the_connection_of_the_default_alias_is_a_proxy_and_taken(
    sqlite_alias: str, app: DjangoApp, job: Any
) -> None:
    with transaction.atomic():
        kept = job.using(connection=default).submit("ann")

    assert [each.id for each in submitted(app)] == [kept.id]


def test_a_connection_to_another_file_is_refused(sqlite_alias: str, app: DjangoApp, job: Any) -> None:
    other = default.copy()
    other.settings_dict["NAME"] = f"{other.settings_dict['NAME']}-other"
    with pytest.raises(OtherDatabase), transaction.atomic():
        try:
            other.ensure_connection()
            other.connection.execute("BEGIN")
            job.using(connection=other).submit("ann")
        finally:
            other.close()
