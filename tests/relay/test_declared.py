"""What may be declared, what is shown of it, and what nobody can hold against us: passwords."""

from __future__ import annotations

import pytest
from redis import exceptions

from fencerow import App
from fencerow.core.telemetry import Telemetry
from fencerow.errors import BrokerAway, DeclarationError, InvalidTopic
from fencerow.relay import KafkaTopic, RedisStream, relay_in, relay_out
from fencerow.relay.redis_stream import is_away
from fencerow.relay.standing import PAUSE_S_MAX, Standing

SECRET = "hunter2"
REDIS = RedisStream(f"redis://user:{SECRET}@host:6379/0?password={SECRET}", "s")
KAFKA = KafkaTopic("host:9092", "t", {"sasl.password": SECRET})


@pytest.fixture
def bare() -> App:
    return App("sqlite:///unused.db")


def test_no_password_is_ever_shown(bare: App) -> None:
    relay_out(bare, "a", topics=["t"], to=REDIS)
    relay_out(bare, "b", topics=["t"], to=KAFKA)
    (chore,) = [each for each in bare.chores if each.name == "relay"]

    assert SECRET not in "".join([repr(REDIS), repr(KAFKA), REDIS.told, KAFKA.told, chore.told()])
    assert "redis host:6379/0 stream s" in chore.told()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("with space", REDIS),
        ("a", RedisStream("http://host", "s")),
        ("a", RedisStream("redis://host", "s", maxlen=0)),
        ("a", KafkaTopic("kafka://user:pw@host", "t")),
        ("a", KafkaTopic("host:9092", "t", {"acks": "1"})),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_declared(bare: App, name: str, place: RedisStream) -> None:
    with pytest.raises(DeclarationError):
        relay_out(bare, name, topics=["t"], to=place)
    assert not [each for each in bare.chores if each.name == "events"]


def test_a_name_is_one_relays_in_both_directions(bare: App) -> None:
    relay_out(bare, "a", topics=["t"], to=REDIS)
    with pytest.raises(DeclarationError, match="declared twice"):
        relay_in(bare, "a", of=KAFKA)
    with pytest.raises(InvalidTopic):
        relay_in(bare, "b", of=KAFKA, unread_topic="job.x")
    with pytest.raises(DeclarationError, match="when_gone"):
        relay_in(bare, "b", of=KAFKA, when_gone="never")  # type: ignore[arg-type]


def test_a_broker_that_is_away_is_asked_ever_more_rarely_and_at_once_again_when_it_is_back() -> None:
    standing = Standing("a", Telemetry())
    pauses = [standing.met(BrokerAway("away")) for _ in range(12)]

    assert pauses[0] < 1.0 < pauses[3] < pauses[6] and max(pauses) <= PAUSE_S_MAX * 1.2
    assert standing.wait_s > 0 and "away" in str(standing.trouble)
    standing.went_well()
    assert standing.wait_s == 0 and standing.trouble is None


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (exceptions.ConnectionError("refused"), True),
        (exceptions.InvalidResponse("an answer that was cut"), True),
        (exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), True),
        (exceptions.NoPermissionError("this user has no permissions"), True),
        (exceptions.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), True),
        (exceptions.ResponseError("Protocol error: invalid bulk length"), False),
    ],
)
def test_what_a_server_says_of_itself_is_no_fault_of_an_event(error: Exception, away: bool) -> None:
    assert is_away(error) is away
