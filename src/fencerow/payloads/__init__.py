"""Payloads that the database must not show, or must not alter unnoticed: `Seal`, `Sign`, and what your own must do.

The guide: docs/guide/payloads.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.core.model.packing import PayloadSeal, PayloadSign
    from fencerow.payloads.seal import Seal
    from fencerow.payloads.sign import Sign
else:
    __getattr__ = lazily(
        __name__,
        {
            "PayloadSeal": "fencerow.core.model.packing",
            "PayloadSign": "fencerow.core.model.packing",
            "Seal": "fencerow.payloads.seal",
            "Sign": "fencerow.payloads.sign",
        },
    )

__all__ = ["PayloadSeal", "PayloadSign", "Seal", "Sign"]
