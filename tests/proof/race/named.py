"""The races by name: what each is about, and the mark that says which tests play it and which are its controls."""

from __future__ import annotations

import pytest

# Numbers are those under which the design lists them. What is not listed here is no race.
RACES = {
    2: "A claim by a worker that is declared dead meanwhile",
    3: "A reclaim of what dead workers held, while others register and claim; a dead worker whose row is gone",
    4: "A claim whose reply was lost",
    5: "A worker that declares others dead after an outage that was its own",
    6: "The death of a worker that runs a suspect, and who takes one",
    8: "What a stale attempt writes about itself after a newer claim",
    10: "The end of an attempt of which a cancel was asked",
    11: "A cancel of a job that is claimed, ends and is revived meanwhile",
    12: "What is said of a refusal, and where a job is looked up",
    13: "An end and whoever waits for it; the end of a key's job and a submit under the key",
    15: "A submit that is repeated after its reply was lost, while its job runs and ends",
    17: "The stamp of a key's end, and who owns the key: a revived job or a new one",
    22: "A group of ends of which a stranger has locked one row, and what is said of rows that did not come back",
    32: "The places of events that are committed in another order than they were made",
    61: "A change of a job that others claim, cancel, expire, take back, revive or change as well",
    62: "A hand-over of a key's turns, and whoever comes to the key, has a turn, gives it up or ends meanwhile",
    63: "The fires of a schedule: ticks, backfills, people, code, the clock; a job held until a window ends",
    64: "A turn that nobody uses and that goes back, and whoever claims, cancels, takes back or hands over meanwhile",
    65: "A submit under a unique key, and whoever submits under it, claims, ends, revives, changes or purges meanwhile",
    66: "The room under a limit, and whoever claims, hands over, ends, dies or changes the limit meanwhile",
    67: "The breaker of a limit: who tries, the end of a trial, and whoever claims or hands over when it opens",
    68: "A job with affinity: who carries its label, its wait that ends, and whoever else claims or cancels meanwhile",
    69: "A unique key that counts until its job starts: the start, who counts on it, who replaces it, a next attempt",
    70: "A claim in the turns of shares, and whoever claims in turn, claims plainly or cancels meanwhile",
    71: "The database's clock goes back: who is dead, what fires, and what was written ahead and is moved back",
    72: "The take of a handover and its confirmation, and whoever takes, confirms or purges it meanwhile",
    73: "An end that comes late, the end of the hold of those behind it, and whoever takes them",
    74: "The end of a job in a line, and whoever cancels it, ends it or takes what is behind it meanwhile",
    75: "A revive of a job whose end was handed over, and whoever confirms it or writes missed ends meanwhile",
    76: "An attempt that suspends its job, and whoever wakes, cancels, takes back or times out the job meanwhile",
    77: "The ends of jobs in a flow, and whoever tells them to those that wait, or to callbacks, at the same time",
    78: "A cancel of a job in a flow, or of the flow, and whoever ends what it waits for and wakes it meanwhile",
    79: "A revive of a flow, and whoever revives, cancels, undoes, deletes, runs or purges of it meanwhile",
    81: "The deliveries of an event, and whoever takes the partition over or reads the event as well",
    82: "An endpoint that is changed, gone or removed, and whoever makes or sends its deliveries meanwhile",
    83: "The secrets of an endpoint: who sends, and whoever rotates them meanwhile",
    84: "A redelivery, and whoever redelivers, revives, sends or purges it meanwhile",
    85: "The probe of an open circuit",
    90: "What an attempt emits, and whoever claims its job anew, ends it or reads its output meanwhile",
    91: "The answer of a person by an address, and another one for the same wait, the time of the wait, or a cancel",
    92: "A step that is remembered with what undoes it, and whoever ends its job meanwhile: its time limit or a cancel",
    94: "The answer of an endpoint that works an attempt, and whoever answers, cancels, suspends or reclaims meanwhile",
}
WHOLE = frozenset({2, 3, 8, 13, 15, 17, 22})
"""Where whole statements are ordered, every run of the tests plays up to 24 orders of these, which are all of most, and
`dev.py prove` all; `dev.py race --long` plays all of them held as well."""
ABSENT = {
    16: "keyed submits are never put together with others': there is no statement to cut",
    23: "a mark is a hint in a worker's memory, no lock: tests/core/store/test_claim.py has what the sweep is for",
}


def named(*numbers: int) -> pytest.MarkDecorator:
    """This test plays these races, or is one of their controls."""
    unknown = set(numbers) - RACES.keys()
    assert not unknown, f"no race has the number {unknown}"
    return pytest.mark.named(*numbers)
