"""The rows of a source are replaced as a whole, once for each content, and the newest content wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow import InvalidInput
from fencerow.errors import OnceMisuse, SourceBusy, SourceConflict, UnusableTable
from fencerow.guards.replace import Replacing, forget_source, replace_for
from fencerow.guards.replace.deciding import Found
from fencerow.guards.replace.sources import purge_sources
from fencerow.testing.clock import DatabaseClock
from tests.guards.places import At
from tests.kit.jobs import AnyEngine

Replace = Callable[..., Replacing]


def chunks_table(engine: AnyEngine) -> str:
    return "fencerow.chunks" if engine.dialect == "postgres" else "chunks"


@pytest.fixture
def replace(engine: AnyEngine) -> Replace:
    with engine.session() as session:
        session.connection.execute(
            f'CREATE TABLE {chunks_table(engine)} ("sourceId" text, n bigint, vector text)'
        )

    def made(source: object = "faq", **content: Any) -> Replacing:
        given = {"table": chunks_table(engine), "source_column": "sourceId", "wait_s": 0, **content}
        return replace_for(At(engine), source=source, **given)

    return made


def chunks(engine: AnyEngine, source: str = "faq") -> list[str]:
    with engine.session() as session:
        rows = session.connection.execute(
            f"SELECT vector FROM {chunks_table(engine)} WHERE \"sourceId\" = '{source}' ORDER BY n"
        ).fetchall()
        return [row[0] for row in rows]


def vectors(*texts: str) -> list[dict[str, Any]]:
    return [{"n": number, "vector": text} for number, text in enumerate(texts)]


def put(replacing: Replacing, *texts: str) -> Found:
    with replacing:
        if replacing.needed:
            assert replacing.insert(vectors(*texts))
        return replacing.found


def test_rows_are_replaced_as_a_whole(replace: Replace, engine: AnyEngine) -> None:
    put(replace(content_hash="a"), "one", "two", "three")
    put(replace("other", content_hash="a"), "another source")
    put(replace(content_hash="b"), "four")

    assert chunks(engine) == ["four"]
    assert chunks(engine, "other") == ["another source"]


async def test_async_code_does_the_same(replace: Replace, engine: AnyEngine) -> None:
    async with replace(version=1) as replacing:
        assert await replacing.ainsert(vectors("one", "two"))
    async with replace(version=1) as replacing:
        assert replacing.found is Found.UNCHANGED

    assert chunks(engine) == ["one", "two"]


def test_the_same_content_is_neither_computed_nor_written_again(replace: Replace, engine: AnyEngine) -> None:
    assert put(replace(content_hash="a"), "one") is Found.NEEDED
    assert put(replace(content_hash="a"), "must not be computed") is Found.UNCHANGED

    assert chunks(engine) == ["one"]


def test_an_older_version_is_skipped_and_one_that_ends_late_is_refused(
    replace: Replace, engine: AnyEngine
) -> None:
    with replace(version=1, content_hash="a") as late:
        assert late.needed
        assert put(replace(version=2, content_hash="b"), "new") is Found.NEEDED
        assert late.insert(vectors("old")) is False
        assert not late.written

    assert put(replace(version=1, content_hash="a"), "old") is Found.OUTDATED
    assert chunks(engine) == ["new"]


def test_without_versions_the_later_reservation_wins(replace: Replace, engine: AnyEngine) -> None:
    with replace(content_hash="a") as late:
        put(replace(content_hash="b"), "new")
        assert late.insert(vectors("old")) is False

    assert chunks(engine) == ["new"]


@pytest.mark.parametrize("versions", [(1, 2, 3), (None, None, None)])
def test_a_content_that_came_back_is_not_overwritten_by_one_in_between(
    replace: Replace, engine: AnyEngine, versions: tuple[int | None, ...]
) -> None:
    """The source went from a to b and back to a: the second a needs no work, and b is outdated all the same."""
    first, second, third = versions
    put(replace(content_hash="a", version=first), "a")
    with replace(content_hash="b", version=second) as between:
        assert between.needed
        assert put(replace(content_hash="a", version=third), "never") is Found.UNCHANGED
        assert between.insert(vectors("b")) is False

    assert chunks(engine) == ["a"]


def test_the_same_version_with_another_content_is_refused(replace: Replace, engine: AnyEngine) -> None:
    put(replace(version=1, content_hash="a"), "a")

    with pytest.raises(SourceConflict, match="another content"), replace(version=1, content_hash="b"):
        pass
    with pytest.raises(SourceConflict, match="without a version"), replace(content_hash="b"):
        pass
    assert put(replace(version=1), "a") is Found.UNCHANGED
    assert chunks(engine) == ["a"]


def test_what_another_computes_is_not_computed_twice(replace: Replace, clock: DatabaseClock) -> None:
    with replace(version=2, content_hash="b", owner="first", stale_s=60) as first:
        assert first.needed
        for version in (1, 2):
            with pytest.raises(SourceBusy) as caught, replace(version=version, content_hash="b"):
                pass
            assert caught.value.owner == "first"
        with replace(version=3, content_hash="c") as newer:
            assert newer.needed
        first.insert(vectors("b"))


def test_a_failed_computation_frees_the_source_at_once(replace: Replace) -> None:
    with pytest.raises(RuntimeError), replace(content_hash="a", owner="first"):
        raise RuntimeError("the provider is away")
    assert put(replace(content_hash="a", owner="second"), "a") is Found.NEEDED


def test_a_crashed_computation_is_taken_up_by_its_owner_at_once_and_by_others_later(
    replace: Replace, clock: DatabaseClock, engine: AnyEngine
) -> None:
    crashed = replace(content_hash="a", owner="job:1", attempt=1, stale_s=60).__enter__()
    with pytest.raises(SourceBusy), replace(content_hash="a", owner="job:2"):
        pass
    with pytest.raises(SourceBusy), replace(content_hash="a", owner="job:1", attempt=1):
        pass
    again = replace(content_hash="a", owner="job:1", attempt=2, stale_s=60).__enter__()
    assert again.needed

    clock.advance(61)
    assert put(replace(content_hash="a", owner="job:2"), "in time") is Found.NEEDED
    assert crashed.insert(vectors("late")) is False
    assert chunks(engine) == ["in time"]


def test_renewing_keeps_others_away(replace: Replace, clock: DatabaseClock) -> None:
    with replace(content_hash="a", stale_s=3600) as slow:
        clock.advance(3000)
        assert slow.renew()
        clock.advance(3000)
        with pytest.raises(SourceBusy), replace(content_hash="a"):
            pass


def test_an_emptied_source_is_remembered(replace: Replace, engine: AnyEngine, clock: DatabaseClock) -> None:
    put(replace(version=1), "one")
    with replace(version=3) as replacing:
        with pytest.raises(OnceMisuse, match="call clear"):
            replacing.insert([])
        assert replacing.clear()

    assert chunks(engine) == []
    assert put(replace(version=2), "back from the dead") is Found.OUTDATED
    assert engine.run(purge_sources(age_s=100, limit=10)) == 0
    clock.advance(101)
    assert engine.run(purge_sources(age_s=100, limit=10)) == 1
    assert put(replace(version=2), "two") is Found.NEEDED
    clock.advance(101)
    assert engine.run(purge_sources(age_s=100, limit=10)) == 0, "what has rows is not forgotten"
    assert forget_source(At(engine), table=chunks_table(engine), source="faq")
    assert put(replace(version=1), "one") is Found.NEEDED


def test_many_rows_go_in_batches(replace: Replace, engine: AnyEngine) -> None:
    put(replace(content_hash="a"), *map(str, range(1501)))
    assert len(chunks(engine)) == 1501


def test_rows_that_cannot_be_meant_are_refused(replace: Replace, engine: AnyEngine) -> None:
    put(replace(content_hash="a"), "stays")
    with replace(content_hash="b") as replacing:
        with pytest.raises(OnceMisuse, match="row 1 has other columns than row 0: vector"):
            replacing.insert([{"n": 1, "vector": "x"}, {"n": 2}])
        with pytest.raises(OnceMisuse, match="belongs to source 'bible'"):
            replacing.insert([{"n": 1, "sourceId": "bible"}])
        with pytest.raises(UnusableTable, match="no column 'vektor'"):
            replacing.insert([{"n": 1, "vektor": "x"}])
        with pytest.raises(InvalidInput, match="no usable name"):
            replacing.insert([{'n" = 1; --': 1}])
    with pytest.raises(OnceMisuse, match="has not started"):
        _ = replace(content_hash="c").needed

    assert chunks(engine) == ["stays"]


def test_a_second_insert_of_one_use_is_refused(replace: Replace, engine: AnyEngine) -> None:
    with replace(content_hash="a") as replacing:
        replacing.insert(vectors("one"))
        with pytest.raises(OnceMisuse, match="replaced already"):
            replacing.insert(vectors("two"))
    with pytest.raises(OnceMisuse, match="used already"):
        replacing.__enter__()

    assert chunks(engine) == ["one"]


def test_a_table_that_cannot_take_the_rows_is_refused_before_they_are_computed(
    replace: Replace, engine: AnyEngine
) -> None:
    for wrong, said in (
        ({"table": "nowhere"}, "no table 'nowhere'"),
        ({"source_column": "source_id"}, "no column 'source_id'"),
    ):
        with pytest.raises(UnusableTable, match=said), replace(content_hash="a", **wrong):
            raise AssertionError("it would be computed")


@pytest.mark.parametrize(
    "wrong",
    [
        {"table": 'chunks"; --'},
        {"table": "a.b.c"},
        {"table": ""},
        {"source_column": "1st"},
        {"source": "x" * 257},
        {"source": "a\0"},
        {"source": None},
        {"source": 1.5},
        {"version": 2**63},
        {"version": True},
        {"version": None},
        {"stale_s": 0.5},
        {"content_hash": ""},
    ],
)
def test_arguments_that_cannot_be_used_are_refused(engine: AnyEngine, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"table": "chunks", "source_column": "s", "source": 1, "version": 1, **wrong}
    with pytest.raises(InvalidInput):
        replace_for(At(engine), **given)


def test_rows_of_ones_own_are_written_in_ones_own_transaction(replace: Replace, engine: AnyEngine) -> None:
    with replace(content_hash="a") as replacing, engine.session() as session:
        assert replacing.take(connection=session.connection)
        session.connection.execute(
            f"INSERT INTO {chunks_table(engine)} (\"sourceId\", n, vector) VALUES ('faq', 1, 'mine')"
        )

    assert chunks(engine) == ["mine"]
    assert put(replace(content_hash="a"), "never") is Found.UNCHANGED
