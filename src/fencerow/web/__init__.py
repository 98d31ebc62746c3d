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
    from fencerow.web.webhooks.seen import SeenWebhooks
    from fencerow.web.webhooks.verifying import verify_webhook
else:
    __getattr__ = lazily(
        __name__,
        {
            "Grant": "fencerow.web.tokens.scope",
            "NewToken": "fencerow.web.tokens.secret",
            "Scope": "fencerow.web.tokens.scope",
            "SeenWebhooks": "fencerow.web.webhooks.seen",
            "TokenRecord": "fencerow.web.tokens.record",
            "verify_webhook": "fencerow.web.webhooks.verifying",
        },
    )

__all__ = ["Grant", "NewToken", "Scope", "SeenWebhooks", "TokenRecord", "verify_webhook"]
