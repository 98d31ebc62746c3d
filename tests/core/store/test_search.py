"""Jobs are found by what they carry, live and finished, alike on both engines and a page at a time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fencerow.client import Client
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.queries import pyformat
from fencerow.db.run import Operation
from fencerow.errors import InvalidInput
from fencerow.operators import looking
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, claim, new_job, register, submit


def labelled(engine: AnyEngine, *, tags: list[str] | None = None, **metadata: Any) -> str:
    (job_id,) = submit(
        engine,
        new_job(
            tags=None if tags is None else json.dumps(tags),
            metadata=json.dumps(metadata) if metadata else None,
        ),
    )
    return job_id


def found(engine: AnyEngine, **chosen: Any) -> list[str]:
    return [job.id for job in Client(engine).list_jobs(**chosen)]


def test_all_tags_and_fields_must_fit(engine: AnyEngine) -> None:
    both = labelled(engine, tags=["a", "b"], customer=17, vip=True)
    one = labelled(engine, tags=["b"], customer="17", vip=1)
    neither = labelled(engine)

    assert found(engine, tags=["b"]) == [one, both]
    assert found(engine, tags=["b", "a"]) == [both]
    assert found(engine, metadata={"customer": 17}) == [both], "a number is no text"
    assert found(engine, metadata={"customer": "17"}) == [one]
    assert found(engine, metadata={"vip": True}) == [both], "true is no 1"
    assert found(engine, tags=["b"], metadata={"vip": 1}) == [one]
    assert found(engine, tags=["c"]) == []
    assert neither not in found(engine, tags=["a"])


@pytest.mark.parametrize(
    ("kept", "asked", "fits"),
    [
        (1.0, 1, True),
        (1, 1.0, True),
        (0.1, 0.1, True),
        (None, None, True),
        (None, 0, False),
        (False, None, False),
        (False, 0, False),
        ("", "", True),
        ("ä%_'\"\\", "ä%_'\"\\", True),
        ([1], 1, False),
        ({"b": 1}, 1, False),
        ("A", "a", False),
    ],
)
def test_both_engines_compare_alike(engine: AnyEngine, kept: object, asked: Any, fits: bool) -> None:
    job_id = labelled(engine, field=kept, other=asked)
    assert found(engine, metadata={"field": asked}) == ([job_id] if fits else [])


def test_a_field_of_any_name_is_found(engine: AnyEngine) -> None:
    name = "a.b'\"$[0] c"
    (job_id,) = submit(engine, new_job(metadata=json.dumps({name: "x"})))
    assert found(engine, metadata={name: "x"}) == [job_id]
    assert found(engine, metadata={"a": "x"}) == []


def test_live_and_finished_are_found_together_with_the_other_filters(engine: AnyEngine) -> None:
    ended = labelled(engine, tags=["x"])
    holder = register(engine)
    (job,) = claim(engine, holder)
    engine.run(store.succeed([store.Success(job.id, job.attempt, '"r"')], holder=holder))
    live = labelled(engine, tags=["x"])

    assert found(engine, tags=["x"]) == [live, ended]
    assert [each.state for each in Client(engine).list_jobs(tags=["x"])] == ["queued", "succeeded"]
    assert found(engine, tags=["x"], queue="other") == []
    assert found(engine, tags=["x"], states=[State.SUCCEEDED]) == [ended]


def test_pages_go_on_where_the_last_ended(engine: AnyEngine) -> None:
    ids = [labelled(engine, tags=["x" if n % 2 else "y"]) for n in range(11)]
    wanted = [each for n, each in enumerate(ids) if n % 2][::-1]

    first = found(engine, tags=["x"], limit=2)
    second = found(engine, tags=["x"], limit=2, before_id=first[-1])
    rest = found(engine, tags=["x"], limit=9, before_id=second[-1])

    assert [*first, *second, *rest] == wanted


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", object()])
def test_only_plain_values_can_be_looked_for(engine: AnyEngine, value: Any) -> None:
    with pytest.raises(InvalidInput):
        found(engine, metadata={"field": value})


def test_a_look_at_a_large_file_is_cut_off_and_goes_on(lite: AnyEngine) -> None:
    (wanted,) = submit(lite, new_job(tags='["rare"]'))
    many = [new_job(tags='["common"]') for _ in range(10_050)]
    submit(lite, *many)
    submit(lite, *(new_job(tags='["other"]') for _ in range(40)))
    plain = [new_job() for _ in range(50)]
    submit(lite, *plain)

    look = lite.run(looking.search(tags='["rare"]'))
    assert (look.jobs, look.looked_to) == ([], many[90].id), "the newest 10,000 that carry any"
    assert found(lite, tags=["rare"]) == [wanted]
    assert found(lite, tags=["common"], limit=3) == [job.id for job in many[:-4:-1]]
    full = found(lite, tags=["common"], limit=10_000)
    assert full == [job.id for job in many[::-1]][:10_000], "beyond one look, in order"


def plan(engine: AnyEngine, operation: Operation[Any]) -> str:
    """How its one statement is carried out, with these parameters."""
    query = operation.steps()
    (text,) = engine.queries[next(operation.steps()).name].statements
    given = next(query).params
    query.close()
    with engine.session() as session:
        if engine.dialect == "postgres":
            cursor = session.connection.execute("EXPLAIN (COSTS OFF) " + pyformat(text), dict(given))
        else:
            cursor = session.connection.execute("EXPLAIN QUERY PLAN " + text, dict(given))
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_a_rare_tag_is_found_by_its_index(pg: AnyEngine) -> None:
    fill = (
        "INSERT INTO {finished_jobs} (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max,"
        " submitted_at, ended_at, args_bytes, args, tags, metadata)"
        " SELECT gen_random_uuid(), 'q', 'n', 'succeeded', now(), 1, 1, 1, now(), now(), 2, '{{}}',"
        " CASE WHEN n % 100 = 0 THEN CAST('[\"t' || n || '\"]' AS json) END,"
        " CASE WHEN n % 100 = 0 THEN json_build_object('n', n) END FROM generate_series(1, 40000) AS n"
    )
    rows(pg, fill)
    rows(pg, "ANALYZE {finished_jobs}")
    assert len(found(pg, tags=["t500"])) == 1
    assert "_tags" in plan(pg, looking.search(tags='["t500"]'))
    assert "_metadata" in plan(pg, looking.search(metadata='{"n":500}'))


def test_a_search_on_sqlite_walks_only_what_carries_labels(lite: AnyEngine) -> None:
    told = plan(lite, looking.search(tags='["a"]', before_id="0"))
    assert "jobs_labelled (id>? AND id<?)" in told, told
    assert "finished_jobs_labelled (id>? AND id<?)" in told, told
    assert not re.search(r"SCAN (fencerow_)?(finished_)?jobs\b", told), told
    assert told.count("(id=?)") >= 2, "the documents are looked up by their ids"


def test_a_list_on_sqlite_reads_no_more_than_its_page(lite: AnyEngine) -> None:
    told = plan(lite, looking.list_jobs(before_id="0"))
    assert "MERGE (UNION ALL)" in told, told
    assert told.count("(id>? AND id<?)") == 2, told
    assert "TEMP B-TREE" not in told, told
