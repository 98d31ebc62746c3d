"""The event of a job's success: its result lies there as it is stored, and is opened for who has the key."""

from __future__ import annotations

import msgspec

from fencerow.core.model.packed import PACKED, Bound
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.events.consumers import Stored

SUCCEEDED = "job.succeeded"


def plain_data(stored: Stored, packing: Packing) -> bytes:
    """The data of an event. A program without a seal or a signature has the result of one as it is stored.

    Raises:
        SealKeyUnknown: the result is under a key that this app has not.
        PayloadAltered: it is not what the job returned.
    """
    data = stored.data.encode()
    inside = packing.inside  # what lies outside the database is no part of an event
    if stored.topic != SUCCEEDED or inside is PLAIN or PACKED not in data:
        return data
    told = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    result = bytes(told.get("result", b""))
    if not result.startswith(PACKED):
        return data
    job_id = msgspec.json.decode(told["job"], type=str)
    told["result"] = msgspec.Raw(inside.unpack(result, Bound.result(job_id)))
    return msgspec.json.encode(told)
