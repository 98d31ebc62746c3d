"""The front door: what reaches Fencerow over HTTP, who may pass, and what is told to others.

Extra `fencerow[web]`. Whoever does not use it loads nothing of it.

The guide: docs/guide/tokens.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.web.tokens.record import TokenRecord
    from fencerow.web.tokens.scope import Grant, Scope
    from fencerow.web.tokens.secret import NewToken
else:
    __getattr__ = lazily(
        __name__,
        {
            "Grant": "fencerow.web.tokens.scope",
            "NewToken": "fencerow.web.tokens.secret",
            "Scope": "fencerow.web.tokens.scope",
            "TokenRecord": "fencerow.web.tokens.record",
        },
    )

__all__ = ["Grant", "NewToken", "Scope", "TokenRecord"]
