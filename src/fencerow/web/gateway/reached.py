"""Which queues a token reaches, asked before anything of them is looked at or changed."""

from __future__ import annotations

from fencerow.web.errors import NotAllowed
from fencerow.web.gateway.route import Call


def reached(call: Call, queue: str) -> str:
    """The queue, if the token is good for it.

    Raises:
        NotAllowed: it names other queues.
    """
    if call.grant.reaches(queue):
        return queue
    raise NotAllowed(
        f"the token is not good for queue {ascii(queue)[:120]}",
        "it names the queues that it is good for",
        "use another token",
    )


def everywhere(call: Call, what: str) -> None:
    """Refuse a token that is good for some queues only: what is asked for says something of all of them.

    Raises:
        NotAllowed: it is such a token.
    """
    if call.grant.queues is not None:
        raise NotAllowed(
            f"{what} are of all queues together",
            "the token is good for some queues only",
            "use a token that names no queues",
        )
