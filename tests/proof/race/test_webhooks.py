"""Races of webhooks: each end is one delivery, one job sends it, and what an endpoint says counts for what it was."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.packing import PLAIN
from fencerow.core.store import store
from fencerow.db.run import Operation, Steps
from fencerow.errors import PartitionLost
from fencerow.events import consumers
from fencerow.events.consumers import PartitionLease
from fencerow.events.sequencer import sequence
from fencerow.web.webhooks import deliveries, endpoints, keeping, looking
from fencerow.web.webhooks.deliveries import Again, DueDelivery, NewDelivery, PostAttempt
from fencerow.web.webhooks.endpoint import EndpointWanted
from fencerow.web.webhooks.endpoints import GROUP
from fencerow.web.webhooks.job import JOB as DELIVERS
from fencerow.web.webhooks.job import QUEUE, delivery_job
from fencerow.web.webhooks.looking import DeliveriesMeant, Delivery
from fencerow_proof.arena.actor import Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, LEASE_S, SECOND, register, uid

SHOP = uid(700)
OLD, NEW = "https://old.example.com/", "https://new.example.com/"
EVENT = 7
REFUSED = PostAttempt(0.1, 500, "status_500")
TAKEN = PostAttempt(0.1, 200)
GONE = PostAttempt(0.1, 410, "status_410")


def adding() -> Operation[bool]:
    return endpoints.add(SHOP, "shop", EndpointWanted(url=OLD), "first", actor=None)


def new_delivery(event: int = EVENT) -> tuple[NewDelivery, Any]:
    job = delivery_job(PLAIN, attempts_max=3, turn=None, actor=None)
    made = NewDelivery(SHOP, event, f"msg_{event}", "job.failed", uid(1), None, "{}", job.id)
    return made, job


def making(event: int = EVENT) -> Operation[list[Any]]:
    made, job = new_delivery(event)
    return deliveries.make([made], [job])


def claiming(holder: str, limit: int = 1) -> Operation[list[Any]]:
    return store.claim(QUEUE, [store.Mark(0)], holder=holder, names=[DELIVERS], limit=limit, margin_s=10.0)


def shown(story: Story) -> list[Delivery]:
    return story.run(looking.listed(DeliveriesMeant(), limit=99))


def live_jobs(story: Story) -> int:
    """How many jobs there are to deliver: claimed by a worker that comes afterwards, beside those that run."""
    story.run(register(uid(190)))
    return len(story.run(claiming(uid(190), limit=99)))


# Setups.


def with_endpoint() -> Script:
    yield register(FIRST)
    yield adding()


def with_delivery() -> Script:
    """One delivery, claimed; returns what is to be sent."""
    yield from with_endpoint()
    yield making()
    (job,) = yield claiming(FIRST)
    return job.id, (yield deliveries.admit(job.id))


def with_failed() -> Script:
    """One delivery whose job has failed; returns it as it is shown."""
    job_id, _ = yield from with_delivery()
    yield deliveries.note_failed(job_id, REFUSED, is_probe=False)
    yield store.fail([store.Failure(job_id, 1, '{"type":"E"}')], holder=FIRST)
    (found,) = yield looking.listed(DeliveriesMeant(), limit=9)
    return found


def with_open_circuit() -> Script:
    """Two deliveries, claimed, to an endpoint whose circuit was open until now; returns their jobs."""
    yield from with_endpoint()
    yield making(1)
    yield making(2)
    jobs = yield claiming(FIRST, limit=2)
    for _ in range(deliveries.CIRCUIT_FAILURES):
        yield deliveries.note_failed(jobs[0].id, REFUSED, is_probe=False)
    yield later(deliveries.CIRCUIT_S + 1)
    return [each.id for each in jobs]


# Two who read the same event.


def two_leases() -> Script:
    """A partition whose first reader lost it to a second one, and an event that both have read."""
    yield from with_endpoint()
    yield sequence()
    first = yield consumers.hold_partitions(GROUP, holder=FIRST, name="w", lease_s=LEASE_S)
    return first.leases[0]


def reader(takes_over: bool) -> Any:
    """Makes the delivery in the transaction that acknowledges the event, as `event.transaction()` does."""

    def script(lease: PartitionLease) -> Script:
        if takes_over:
            yield later(LEASE_S + 1)
            held = yield consumers.hold_partitions(GROUP, holder=SECOND, name="w", lease_s=LEASE_S)
            if not held.leases:
                return "not taken"
            lease = held.leases[0]

        def steps() -> Steps[int]:
            submitted = yield from making().steps()
            yield from consumers.advance(lease, old=lease.cursor, cursor=lease.cursor + 1).steps()
            return len(submitted)

        try:
            return (yield transaction("fan out", steps))
        except PartitionLost:
            return "lost"

    return script


def one_delivery(story: Story) -> None:
    (found,) = shown(story)
    assert found.state == "pending", f"nobody delivers it: {found}"
    assert live_jobs(story) == 1, "two jobs deliver one end"
    made = [each for each in story.results.values() if each == 1]
    assert len(made) == 1, f"made by: {story.results}"


takeover = Scenario(
    "fan out × takeover of the partition, fan out",
    two_leases,
    [Actor("first", reader(False)), Actor("second", reader(True))],
    one_delivery,
)
fan_outs = Scenario(
    "make_deliveries × make_deliveries of one event",
    with_endpoint,
    [doing("one", making()), doing("other", making())],
    lambda story: one_delivery_of_two(story),
)


def one_delivery_of_two(story: Story) -> None:
    (found,) = shown(story)
    assert found.state == "pending"
    assert live_jobs(story) == 1, "two jobs deliver one end"


EACH_ITS_OWN = Cut(
    "make_deliveries",
    ("ON CONFLICT DO NOTHING", "ON CONFLICT (endpoint_id, event_id) DO UPDATE SET job_id = EXCLUDED.job_id"),
    ("ON CONFLICT DO NOTHING", "ON CONFLICT (endpoint_id, event_id) DO UPDATE SET job_id = EXCLUDED.job_id"),
)


@named(81)
def test_an_end_is_one_delivery_whoever_takes_the_partition_over(race: Race) -> None:
    race(takeover)


@named(81)
def test_of_two_that_read_an_event_one_makes_its_delivery(race: Race) -> None:
    race(fan_outs)


@named(81)
def test_two_jobs_deliver_one_end_after_a_takeover_without_the_key(race: Race) -> None:
    race.turns_red(takeover, EACH_ITS_OWN)


@named(81)
def test_two_jobs_deliver_one_end_if_the_second_goes_on_at_the_key(race: Race) -> None:
    race.turns_red(fan_outs, EACH_ITS_OWN)


# An endpoint that is changed or removed while it is told something.


def one_counts(story: Story) -> None:
    """Either the old address is gone, or the new one is not."""
    (found,) = story.run(endpoints.read())
    assert story.results["sender"] is not story.results["person"], f"{story.results}"
    assert (found.url, found.state) in ((OLD, "gone"), (NEW, "enabled")), (
        "said of an address that was not asked"
    )


gone = Scenario(
    "note_gone × change_endpoint",
    with_delivery,
    [
        Actor("sender", lambda sent: _asked(deliveries.note_gone(sent[0], GONE, version=sent[1].version))),
        doing("person", endpoints.change("shop", 1, EndpointWanted(url=NEW), actor=None)),
    ],
    one_counts,
)
ANY_VERSION = Cut(
    "note_gone",
    ("AND endpoint.version = CAST(:version AS bigint)", "AND CAST(:version AS bigint) > 0"),
    ("AND endpoint.version = :version", "AND :version > 0"),
)


def _asked(operation: Operation[Any]) -> Script:
    return (yield operation)


@named(82)
def test_410_counts_for_the_address_that_said_it(race: Race) -> None:
    race(gone)


@named(82)
def test_a_new_address_is_gone_for_the_old_one_s_answer_without_the_version(race: Race) -> None:
    race.turns_red(gone, ANY_VERSION)


def nothing_is_sent(story: Story) -> None:
    """Who asks after the remove has nothing to send."""
    story.run(register(uid(190)))
    for job in story.run(claiming(uid(190), limit=9)):
        assert story.run(deliveries.admit(job.id)) is None, "a removed endpoint is told something"
    assert shown(story) == []


removal = Scenario(
    "make_deliveries × remove_endpoint × purge_removed",
    with_endpoint,
    [
        doing("reader", making()),
        doing("person", endpoints.remove("shop", actor=None)),
        doing("purge", keeping.purge_removed(limit=9)),
    ],
    nothing_is_sent,
)
REMOVED_TOO = Cut(
    "read_due_delivery",
    ("AND endpoint.state <> 'removed'", ""),
    ("AND endpoint.state <> 'removed'", ""),
)


@named(82)
def test_a_removed_endpoint_is_told_nothing_whenever_its_delivery_was_made(race: Race) -> None:
    race(removal)


@named(82)
def test_a_removed_endpoint_is_told_something_without_the_guard(race: Race) -> None:
    race.turns_red(removal, REMOVED_TOO)


def made_before(story: Story) -> None:
    """What was made was made before the endpoint was disabled."""
    (endpoint,) = story.run(endpoints.read())
    made_us = [each.created_at_us for each in shown(story)]
    assert all(each <= endpoint.changed_at_us for each in made_us), (
        "a disabled endpoint is to be told something"
    )


disabled = Scenario(
    "make_deliveries × disable_endpoint",
    with_endpoint,
    [doing("reader", making()), doing("person", endpoints.disable("shop", reason=None, actor=None))],
    made_before,
)
disabled_again = Scenario(
    "redeliver × disable_endpoint",
    with_failed,
    [
        Actor("one", lambda found: redelivering(found)),
        doing("person", endpoints.disable("shop", reason=None, actor=None)),
    ],
    lambda story: none_once_more(story),
)


def none_once_more(story: Story) -> None:
    """Whoever redelivers after the disable redelivers nothing."""
    (endpoint,), (found,) = story.run(endpoints.read()), shown(story)
    live = story.run(store.read([found.job_id])).get(found.job_id)
    if story.results["one"]:
        assert live is not None
        assert live.submitted_at_us <= endpoint.changed_at_us, "it was redelivered to a disabled endpoint"


TOLD_ALL_THE_SAME = Cut(
    "make_deliveries",
    ("WHERE endpoint.state = 'enabled'", "WHERE true"),
    ("WHERE endpoint.state = 'enabled'", "WHERE true"),
)
AGAIN_ALL_THE_SAME = Cut("redeliver", sqlite=("AND endpoint.state = 'enabled'", ""))


@named(82)
@in_modes("plain", "sqlite")
def test_a_disabled_endpoint_is_told_nothing_more(race: Race) -> None:
    race(disabled)


@named(82)
@in_modes("plain", "sqlite")
def test_a_disabled_endpoint_is_told_more_without_the_guard(race: Race) -> None:
    race.turns_red(disabled, TOLD_ALL_THE_SAME)


@named(82)
@in_modes("sqlite")
def test_a_disabled_endpoint_is_sent_nothing_once_more(race: Race) -> None:
    race(disabled_again)


@named(82)
@in_modes("sqlite")
def test_a_disabled_endpoint_is_sent_it_once_more_without_the_guard(race: Race) -> None:
    race.turns_red(disabled_again, AGAIN_ALL_THE_SAME)


# Secrets.


def known_to_the_receiver(story: Story) -> None:
    """It has the first secret, and nobody has retired that: whatever is sent is signed by it."""
    sent: DueDelivery | None = story.results["sender"]
    assert sent is not None and "first" in sent.secrets, f"signed by {sent.secrets if sent else None}"
    assert sorted((story.results["one"], story.results["other"])) == [False, True], "no rotation, or two"


rotation = Scenario(
    "read_due_delivery × rotate_endpoint × rotate_endpoint",
    with_delivery,
    [
        Actor("sender", lambda sent: _asked(deliveries.admit(sent[0]))),
        doing("one", endpoints.rotate("shop", "second", overlap_s=60.0, actor=None)),
        doing("other", endpoints.rotate("shop", "third", overlap_s=60.0, actor=None)),
    ],
    known_to_the_receiver,
)
THREE = Cut(
    "rotate_endpoint",
    ("AND (endpoint.old_until IS NULL OR endpoint.old_until <= fencerow.now())", ""),
    ("AND (endpoint.old_until IS NULL OR endpoint.old_until <= fencerow.now())", ""),
)


@named(83)
def test_whatever_is_sent_is_signed_by_a_secret_that_the_receiver_has(race: Race) -> None:
    race(rotation)


@named(83)
def test_a_second_rotation_takes_the_receiver_s_secret_away_without_the_guard(race: Race) -> None:
    race.turns_red(rotation, THREE)


# Redeliveries.


def redelivering(found: Delivery) -> Script:
    job = delivery_job(PLAIN, attempts_max=3, turn=None, actor=None)
    again = Again(found.endpoint, found.event_id, found.job_id, job.id)
    return len((yield deliveries.redeliver([again], [job])))


def sent_once_more_by_one(story: Story) -> None:
    assert sorted((story.results["one"], story.results["other"])) == [0, 1], f"{story.results}"
    assert live_jobs(story) == 1, "two jobs deliver it"


redeliveries = Scenario(
    "redeliver × redeliver",
    with_failed,
    [Actor("one", redelivering), Actor("other", redelivering)],
    sent_once_more_by_one,
)
NOT_LIVE = "AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id"
UNSEEN = Cut(
    "redeliver",
    (f"AND delivery.job_id = again.seen\n  {NOT_LIVE} OFFSET 0)", ""),
    (f"AND delivery.job_id = again.value ->> 'seen'\n  {NOT_LIVE})", ""),
)


@named(84)
def test_of_two_redeliveries_one_sends_it_once_more(race: Race) -> None:
    race(redeliveries)


@named(84)
def test_two_jobs_send_it_once_more_without_the_guard(race: Race) -> None:
    race.turns_red(redeliveries, UNSEEN)


def sending_the_revived(found: Delivery) -> Script:
    """The failed job is revived, and its worker sends what it has; returns whether it had something."""
    yield store.revive(found.job_id, actor=None)
    for job in (yield claiming(FIRST, limit=2)):
        if job.id == found.job_id and (yield deliveries.admit(job.id)) is not None:
            yield deliveries.note_arrived(job.id, TAKEN)
            return True
    return False


def one_sends(story: Story) -> None:
    assert story.results["sender"] is not (story.results["person"] == 1), (
        f"sent by both, or none: {story.results}"
    )


revived = Scenario(
    "revive, read_due_delivery, note_delivered × redeliver",
    with_failed,
    [Actor("sender", sending_the_revived), Actor("person", redelivering)],
    one_sends,
)
revived_beside = Scenario(
    "revive, read_due_delivery, note_delivered ×× redeliver",
    with_failed,
    [Actor("sender", sending_the_revived), Actor("person", redelivering)],
    lambda story: it_is_open_or_arrived(story),
)


def it_is_open_or_arrived(story: Story) -> None:
    """Revived in the moment of a redelivery it may be sent twice, under one id; who delivers it closes it."""
    (found,) = shown(story)
    assert found.state == ("pending" if story.results["person"] == 1 else "delivered"), f"{found.state}"


UNDER_WAY = Cut("redeliver", sqlite=(f"{NOT_LIVE})", ""))


def _late_note(found: Delivery) -> Script:
    return (yield deliveries.note_arrived(found.job_id, TAKEN))


late = Scenario(
    "note_delivered by the job before × redeliver",
    with_failed,
    [Actor("sender", _late_note), Actor("person", redelivering)],
    lambda story: one_of_both(story),
)


def one_of_both(story: Story) -> None:
    """Either it arrived before it was sent once more, or the one before says nothing any more."""
    (found,) = shown(story)
    if story.results["person"] == 1:
        assert found.state == "pending", f"{found.state}: its new job would send nothing"


@named(84)
def test_of_a_revived_job_and_a_redelivery_one_closes_it(race: Race) -> None:
    race(revived_beside)


@named(84)
@in_modes("sqlite")
def test_a_revived_job_and_a_redelivery_never_both_deliver(race: Race) -> None:
    race(revived)


@named(84)
@in_modes("sqlite")
def test_both_deliver_if_a_redelivery_takes_what_is_under_way(race: Race) -> None:
    race.turns_red(revived, UNDER_WAY)


@named(84)
def test_a_late_note_of_the_job_before_closes_no_redelivery(race: Race) -> None:
    race(late)


ANY_JOB = Cut(
    "note_delivered",
    ("delivery.job_id = CAST(:job AS uuid)", "CAST(:job AS uuid) IS NOT NULL"),
    ("delivery.job_id = :job", ":job IS NOT NULL"),
)


@named(84)
def test_a_late_note_closes_a_redelivery_without_the_job(race: Race) -> None:
    race.turns_red(late, ANY_JOB)


def purging(_: Any) -> Script:
    yield keeping.purge_delivered(age_s=-1.0, limit=9)


def with_arrived() -> Script:
    """One delivery that arrived; returns it as it is shown."""
    job_id, _ = yield from with_delivery()
    yield deliveries.note_arrived(job_id, TAKEN)
    yield store.succeed([store.Success(job_id, 1, "null")], holder=FIRST)
    (found,) = yield looking.listed(DeliveriesMeant(), limit=9)
    return found


def kept_if_wanted(story: Story) -> None:
    assert (story.results["person"] == 1) == (len(shown(story)) == 1), (
        "what is to be sent once more was purged"
    )
    assert live_jobs(story) == story.results["person"]


purge = Scenario(
    "redeliver × purge_delivered",
    with_arrived,
    [Actor("person", redelivering), Actor("purge", purging)],
    kept_if_wanted,
)


AGE = "< (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))"
AGE_LITE = "arrived.delivered_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)"
NEVER_ARRIVED = (
    Cut(
        "purge_delivered",
        (f"arrived.delivered_at {AGE}", "CAST(:age_s AS double precision) < 0"),
        (AGE_LITE, ":age_s < 0"),
    ),
    Cut("purge_delivered", (f"AND COALESCE(delivery.delivered_at {AGE}, false)", "")),
)


@named(84)
def test_what_is_sent_once_more_is_purged_if_nobody_asks_whether_it_arrived(race: Race) -> None:
    race.turns_red(purge, *NEVER_ARRIVED)


@named(84)
def test_what_is_sent_once_more_is_not_purged(race: Race) -> None:
    race(purge)


# The circuit.


def one_probe(story: Story) -> None:
    found = [story.results["one"], story.results["other"]]
    assert [each.is_probe for each in found].count(True) == 1, "no probe, or two"
    assert [each.wait_s is None for each in found].count(True) == 1, "both send, or none"


probes = Scenario(
    "take_probe × take_probe",
    with_open_circuit,
    [
        Actor("one", lambda jobs: _asked(deliveries.admit(jobs[0]))),
        Actor("other", lambda jobs: _asked(deliveries.admit(jobs[1]))),
    ],
    one_probe,
)
ANY_TIME = Cut(
    "take_probe",
    ("AND endpoint.open_until <= fencerow.now()", ""),
    ("AND endpoint.open_until <= fencerow.now()", ""),
)


@named(85)
def test_one_probe_goes_first(race: Race) -> None:
    race(probes)


@named(85)
def test_both_go_without_the_guard(race: Race) -> None:
    race.turns_red(probes, ANY_TIME)
