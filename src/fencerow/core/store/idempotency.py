"""Idempotency keys: reserved before their jobs are stored, in sorted order, and looked up where somebody has them.

These are parts of a submit (`storing.py`), in its transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from fencerow.core.errors import KeyConflict
from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.store.known import refuse_other_work
from fencerow.core.store.submit import insert_absent
from fencerow.db.run import Steps, execute

ROUNDS_MAX = 20  # of reserve and look; each loses only to somebody who won

Pair = tuple[str, str]  # scope and key


class ReservedKeys(msgspec.Struct):
    """Who owns each key, which of the owners have ended while their keys still live, and which keys are new."""

    owners: dict[Pair, str]
    ended: set[str]
    new: set[Pair]


def reserve(claims: Sequence[KeyClaim]) -> Steps[ReservedKeys]:
    """Reserve each key or find its owner: insert, look in a second statement, again if the owner is gone."""
    by_key: dict[Pair, KeyClaim] = {}
    for claim in claims:
        first = by_key.setdefault((claim.scope, claim.key), claim)
        _refuse_other_payload(claim, first.job_id, first.fingerprint)
    reserved = ReservedKeys({}, set(), set())
    for _ in range(ROUNDS_MAX):
        missing = [by_key[pair] for pair in sorted(by_key) if pair not in reserved.owners]
        if not missing:
            return reserved
        wanted = msgspec.json.encode(missing).decode()
        for scope, key in (yield from execute("reserve_keys", keys=wanted)):
            pair = (str(scope), str(key))
            reserved.owners[pair] = by_key[pair].job_id
            reserved.new.add(pair)
        if (yield from _look(wanted, by_key, reserved)):
            yield from execute("drop_expired_keys", keys=wanted)
    raise KeyConflict(
        "other submits took the idempotency keys too often",
        f"{ROUNDS_MAX} rounds were lost to other submits",
        "submit again",
    )


def _look(wanted: str, by_key: Mapping[Pair, KeyClaim], reserved: ReservedKeys) -> Steps[bool]:
    """Note who owns the keys that could not be reserved; returns whether the lifetime of one of them is over."""
    any_expired = False
    for scope, key, job_id, fingerprint, is_expired, has_ended in (
        yield from execute("read_keys", keys=wanted)
    ):
        pair = (str(scope), str(key))
        if pair in reserved.owners:
            continue
        if is_expired:  # whoever had it: what is reserved again lives until the end of its job
            any_expired = True
            continue
        _refuse_other_payload(by_key[pair], str(job_id), str(fingerprint))
        reserved.owners[pair] = str(job_id)
        if has_ended:
            reserved.ended.add(str(job_id))
    return any_expired


def _refuse_other_payload(claim: KeyClaim, owner: str, fingerprint: str) -> None:
    if fingerprint not in (claim.fingerprint, claim.also):
        raise KeyConflict(
            f"key {claim.key!r} in scope {claim.scope!r} already belongs to job {owner} with another payload",
            f"its fingerprint is {fingerprint[:16]}…, this payload's is {claim.fingerprint[:16]}…",
            "send the same payload to get that job, or use another key",
            job_id=owner,
            fingerprint=fingerprint,
        )


def store_fresh(fresh: Mapping[str, NewJob], taken: Mapping[Pair, str], own: Collection[str]) -> Steps[None]:
    """Insert the jobs of keys that are theirs; `taken`: the keys reserved just now, each with its job.

    A key that was reserved before has its job's fingerprint, so only a job of one reserved now may be other work.
    """
    inserted = yield from insert_absent(list(fresh.values()), any(job_id in own for job_id in fresh), own)
    there = {pair: job_id for pair, job_id in taken.items() if job_id not in inserted}
    yield from refuse_other_work([fresh[job_id] for job_id in there.values() if job_id in own], keyed=True)
    if there:
        yield from _give_back(there)


def give_keys(given: Sequence[Mapping[str, object]]) -> Steps[None]:
    """Keys that were reserved for jobs which are not stored belong to those that are there instead (`was`, `job_id`).

    The ends of those do not know of the keys, so that their lifetimes count from now.
    """
    if given:
        yield from execute("give_keys", keys=msgspec.json.encode(given).decode())


def _give_back(there: Mapping[Pair, str]) -> Steps[None]:
    """Keys of jobs that were there before: these keys had been forgotten with the end of their jobs, and stay so."""
    wanted = [{"scope": scope, "key": key, "job_id": job_id} for (scope, key), job_id in there.items()]
    yield from execute("give_keys_back", keys=msgspec.json.encode(wanted).decode())
