"""The names of spans and attributes: the messaging conventions of OpenTelemetry, in which a queue is a destination.

Those conventions are not stable yet, so the names stand here and are taken from no library.
"""

from __future__ import annotations

from collections.abc import Mapping

from fencerow.traces.carrying import CORRELATION

SYSTEM = "messaging.system"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
CONVERSATION = "messaging.message.conversation_id"
BATCH_COUNT = "messaging.batch.message_count"
GROUP = "messaging.consumer.group.name"
ERROR_TYPE = "error.type"
JOB = "fencerow.job.name"
ATTEMPT = "fencerow.job.attempt"

FENCEROW = "fencerow"
SUBMIT, PROCESS, PUBLISH = "submit", "process", "publish"
TYPES = {SUBMIT: "send", PROCESS: "process", PUBLISH: "send"}

Attributes = dict[str, str | int]


def attributes_of(operation: str, destination: str | None, headers: Mapping[str, str]) -> Attributes:
    """What every span of ours has. `destination`: a queue, or the topic of an event; None where it is not known."""
    found: Attributes = {
        SYSTEM: FENCEROW,
        OPERATION: operation,
        OPERATION_TYPE: TYPES[operation],
    }
    if destination is not None:
        found[DESTINATION] = destination
    if CORRELATION in headers:
        found[CONVERSATION] = headers[CORRELATION]
    return found
