"""Change of a job that needs turns: which it gives up, where it waits, and which it keeps; on both engines."""

from __future__ import annotations

import pytest

from fencerow import Client
from fencerow.core.model.change import NewArguments
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.errors import InvalidInput
from fencerow.limits import Limit
from fencerow.limits.errors import UnknownLimit
from fencerow.operators import changes
from fencerow.operators.job_change import JobChange
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit
from tests.operators.test_change import change


def exclusive(engine: AnyEngine, count: int = 2) -> list[str]:
    """Jobs of one key: the first has the turn, the others wait."""
    ids = submit(engine, *(new_job(exclusive="k") for _ in range(count)))
    assert hand_over(engine) == ids[:1]
    return ids


def hand_over(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(handing.hand_over()).queued]


def test_a_job_that_is_put_off_gives_its_turn_up(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, second = exclusive(engine)

    assert change(engine, first, JobChange(delay_s=60.0)).state == State.WAITING

    assert hand_over(engine) == [second]
    clock.advance(61)
    assert hand_over(engine) == []
    (job,) = claim(engine, register(engine))
    assert job.id == second
    assert engine.run(store.succeed([store.Success(second, 1, "1")], holder=_holder(engine, second)))
    assert hand_over(engine) == [first]


def _holder(engine: AnyEngine, job_id: str) -> str:
    return read(engine, job_id).holder or ""


@pytest.mark.parametrize("wanted", [JobChange(at_once=True), JobChange(priority=4), JobChange(delay_s=0.0)])
def test_a_turn_is_kept_by_a_change_that_does_not_put_it_off(engine: AnyEngine, wanted: JobChange) -> None:
    first, _ = exclusive(engine)
    assert change(engine, first, wanted).state == State.QUEUED
    assert hand_over(engine) == []


def test_who_waits_is_found_at_its_new_place(engine: AnyEngine) -> None:
    later, sooner = submit(engine, new_job(exclusive="k", delay_s=3600), new_job(exclusive="k", delay_s=7200))
    assert hand_over(engine) == []

    assert change(engine, sooner, JobChange(at_once=True)).state == State.WAITING

    assert hand_over(engine) == [sooner]
    change(engine, later, JobChange(at_once=True))
    assert hand_over(engine) == []


def test_of_those_who_wait_the_raised_one_is_next(engine: AnyEngine) -> None:
    first, _, third = exclusive(engine, 3)
    change(engine, third, JobChange(priority=9))
    claim(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(first, 1, "1")], holder=holder))
    assert hand_over(engine) == [third]


EVE = '{"to":"eve"}'


def with_key(key: str | None, *, before: str | None = "k", known: bool = True) -> JobChange:
    """A change of the arguments, and the keys that the declaration tells of the new ones and of those before."""

    def column_of(name: str, args: str) -> str | None:
        return (key if "eve" in args else before) if name == "exclusive" else None

    return JobChange(arguments=lambda _: NewArguments(EVE, column_of=column_of if known else None))


def test_new_arguments_bring_a_job_to_the_gate_of_its_new_key(engine: AnyEngine) -> None:
    first, second = exclusive(engine)
    (other,) = submit(engine, new_job(exclusive="other"))
    assert hand_over(engine) == [other]

    done = change(engine, first, with_key("other"))

    assert (done.state, done.changes["exclusive"]) == (State.WAITING, ("k", "other"))
    assert read(engine, first).gate == "key:other"
    assert hand_over(engine) == [second], (
        "its turn of k is the next one's, and that of the other key is taken"
    )
    assert change(engine, other, with_key(None, before="other")).state == State.QUEUED
    assert hand_over(engine) == [first]
    (plain,) = submit(engine)
    (waiting,) = engine.run(changes.change_many([plain], with_key("k", before=None), actor=None))
    assert (waiting.state, read(engine, plain).gate) == (State.WAITING, "key:k")
    assert hand_over(engine) == []


def test_new_arguments_bring_a_job_under_its_new_limits_if_somebody_defined_them(engine: AnyEngine) -> None:
    Client(engine).limits.define(Limit("mail", at_once=1, per_key=True))
    ada, eve = submit(engine, new_job(limits=("mail/ada",)), new_job(limits=("mail/eve",)))
    assert hand_over(engine) == [ada, eve]

    def to_eve(name: str) -> JobChange:
        def column_of(column: str, args: str) -> tuple[str, ...] | None:
            return (f"{name}/eve" if "eve" in args else "mail/ada",) if column == "limits" else None

        return JobChange(arguments=lambda _: NewArguments(EVE, len(EVE), column_of=column_of))

    with pytest.raises(UnknownLimit):
        change(engine, ada, to_eve("post"))
    assert read(engine, ada).limits == ["mail/ada"]
    assert change(engine, ada, to_eve("mail")).changes["limits"] == (("mail/ada",), ("mail/eve",))
    assert hand_over(engine) == [] and read(engine, ada).gate == "limit:mail/eve"
    engine.run(store.cancel(eve, actor=None))
    assert hand_over(engine) == [ada]


def test_arguments_of_a_job_whose_turns_nobody_can_tell_stay(engine: AnyEngine) -> None:
    first, second = exclusive(engine)
    for job_id, wrong in (
        (first, with_key("k", known=False)),
        (second, with_key("other", before="of another submit")),
        (second, with_key(None, before=None, known=False)),
    ):
        with pytest.raises(InvalidInput, match="submit the work again"):
            change(engine, job_id, wrong)
        assert engine.run(changes.change_many([job_id], wrong, actor=None)) == []
    for job_id, right in ((first, with_key("k")), (second, with_key("same", before="same"))):
        assert change(engine, job_id, right).changes.keys() == {"args_bytes"}
        assert read(engine, job_id).exclusive == "k"
    (plain,) = submit(engine)
    assert change(engine, plain, with_key(None, known=False)).changes
