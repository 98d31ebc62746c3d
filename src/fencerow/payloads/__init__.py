"""Payloads that the database must not show, must not alter unnoticed, or should not hold: seals, signatures and stores.

The guide: docs/guide/payloads.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.payloads.outside.folder import FolderStore
    from fencerow.payloads.outside.s3 import S3Store
    from fencerow.payloads.outside.store import PayloadStore, StoredObject
    from fencerow.payloads.seal import Seal
    from fencerow.payloads.seals import PayloadSeal, PayloadSign
    from fencerow.payloads.secret import Secret
    from fencerow.payloads.sign import Sign
else:
    __getattr__ = lazily(
        __name__,
        {
            "FolderStore": "fencerow.payloads.outside.folder",
            "PayloadStore": "fencerow.payloads.outside.store",
            "S3Store": "fencerow.payloads.outside.s3",
            "StoredObject": "fencerow.payloads.outside.store",
            "PayloadSeal": "fencerow.payloads.seals",
            "PayloadSign": "fencerow.payloads.seals",
            "Seal": "fencerow.payloads.seal",
            "Secret": "fencerow.payloads.secret",
            "Sign": "fencerow.payloads.sign",
        },
    )

__all__ = [
    "FolderStore",
    "PayloadSeal",
    "PayloadSign",
    "PayloadStore",
    "S3Store",
    "Seal",
    "Secret",
    "Sign",
    "StoredObject",
]
