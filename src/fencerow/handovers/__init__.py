"""Handovers: the ends of jobs, handed to a receiver in the order of the submits, and kept until they are confirmed.

    @app.job(handover=HandoverTo("bot", key=lambda channel, **_: channel, wait_for_earlier_s=1080))
    async def answer(channel: str, message: str) -> str: ...

    for handover in app.client.handovers("bot"):
        post(handover.key, handover.result)
        app.client.handovers("bot").confirm(handover)

The guide: docs/guide/handover.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.handovers.client import ConfirmAnswer, Receiver
    from fencerow.handovers.errors import HandoverLost, HandoverNotFound
    from fencerow.handovers.handovers import Handover
    from fencerow.handovers.options import HandoverTo
else:
    __getattr__ = lazily(
        __name__,
        {
            "ConfirmAnswer": "fencerow.handovers.client",
            "Handover": "fencerow.handovers.handovers",
            "HandoverLost": "fencerow.handovers.errors",
            "HandoverNotFound": "fencerow.handovers.errors",
            "HandoverTo": "fencerow.handovers.options",
            "Receiver": "fencerow.handovers.client",
        },
    )

__all__ = ["ConfirmAnswer", "Handover", "HandoverLost", "HandoverNotFound", "HandoverTo", "Receiver"]
