"""`relay_out(app, name, topics=..., to=...)`: events go on to a broker, in the order of the bus."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from fencerow.core.app.app import JobsApp
from fencerow.core.errors import DeclarationError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.retry import RetryRule
from fencerow.db.text import shown
from fencerow.events.declare import register
from fencerow.events.declared import DELIVERIES_MAX, PARTITIONS, TIMEOUT_S, Consumer
from fencerow.events.groups import PARTITIONS_MAX, GroupStart
from fencerow.events.topics import check_patterns
from fencerow.relay.broker import Place
from fencerow.relay.chore import declared_by
from fencerow.relay.declared import RelayOut, check_name
from fencerow.relay.errors import BrokerRefused
from fencerow.relay.sending import Outward
from fencerow.relay.standing import Standing

GROUP: Final = "relay."
BACKOFF: Final = Backoff(base_s=1.0)


def relay_out(
    app: JobsApp,
    name: str,
    *,
    topics: Sequence[str],
    to: Place,
    start: str | int | datetime = "end",
    partitions: int = PARTITIONS,
) -> None:
    """Let this app's workers send the events of these topics to a broker. Call it once, where the app is made.

        relay_out(app, "orders", topics=["order.*"], to=RedisStream("redis://redis/0", "orders"))

    They are sent by a group of the bus called `relay.NAME`, which has its own place in the log: an event counts as sent
    once the broker has said that it has it. Events of one key go out in their order, at least once each; every message
    has the header `fencerow-id`, by which a receiver knows a double. While the broker is away the group holds its
    partitions: nothing is lost, nothing parked. An event that the broker will never take is parked, as a failed one is.

    `start` and `partitions` are those of `consumer`. A partition sends up to 100 events at a time: to Redis in one
    transaction, to Kafka at most one of each key. With `partitions=1` all events go out in the one order of the log.
    Sealed results of jobs stay sealed.

    Raises:
        MissingExtra: the client of this broker is not installed.
        DeclarationError: the name is taken, or an option cannot be used. InvalidTopic: a topic cannot be.
    """
    declared = declared_by(app)
    relay = check_name(name, declared)
    if type(partitions) is not int or not 1 <= partitions <= PARTITIONS_MAX:
        raise DeclarationError(
            f"partitions is {shown(partitions)}", f"an integer from 1 to {PARTITIONS_MAX} is expected", ""
        )
    patterns, begin = tuple(check_patterns(topics)), GroupStart.of(start)
    to.check()
    standing = Standing(relay, app.telemetry)
    outward = Outward(relay, to, standing, app.telemetry, in_one_order=partitions == 1)
    rule = RetryRule(attempts_max=DELIVERIES_MAX, backoff=BACKOFF, fail_on=(BrokerRefused,))
    group = Consumer(
        GROUP + relay, patterns, outward.send, True, rule, partitions, begin, TIMEOUT_S, paged=outward.page
    )
    register(app, group)
    declared.out.append(RelayOut(relay, to, standing, outward))
