"""The front door: what reaches Fencerow over HTTP, who may pass, and what is told to others.

Extra `fencerow[web]`. Whoever does not use it loads nothing of it.

The guide: docs/guide/tokens.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.web.answers import Answered, Later, answer
    from fencerow.web.inbound.declared import receive_webhooks
    from fencerow.web.inbound.schemes import GitHub, StandardWebhooks, Stripe
    from fencerow.web.inbound.webhook import InboundWebhook
    from fencerow.web.tokens.record import TokenRecord
    from fencerow.web.tokens.scope import Grant, Scope
    from fencerow.web.tokens.secret import NewToken
    from fencerow.web.webhooks.declared import WebhookTo, told_to
    from fencerow.web.webhooks.endpoint import Endpoint, EndpointOptions
    from fencerow.web.webhooks.endpoint_verbs import AddedEndpoint
    from fencerow.web.webhooks.fan_out import deliver_webhooks
    from fencerow.web.webhooks.looking import Delivery, WebhookAttempt
    from fencerow.web.webhooks.seen import SeenWebhooks
    from fencerow.web.webhooks.verbs import Webhooks
    from fencerow.web.webhooks.verifying import verify_webhook
    from fencerow.web.worked.declared import worked_over_http
else:
    __getattr__ = lazily(
        __name__,
        {
            "Answered": "fencerow.web.answers",
            "Later": "fencerow.web.answers",
            "answer": "fencerow.web.answers",
            "AddedEndpoint": "fencerow.web.webhooks.endpoint_verbs",
            "Delivery": "fencerow.web.webhooks.looking",
            "Endpoint": "fencerow.web.webhooks.endpoint",
            "EndpointOptions": "fencerow.web.webhooks.endpoint",
            "GitHub": "fencerow.web.inbound.schemes",
            "Grant": "fencerow.web.tokens.scope",
            "InboundWebhook": "fencerow.web.inbound.webhook",
            "NewToken": "fencerow.web.tokens.secret",
            "Scope": "fencerow.web.tokens.scope",
            "SeenWebhooks": "fencerow.web.webhooks.seen",
            "StandardWebhooks": "fencerow.web.inbound.schemes",
            "Stripe": "fencerow.web.inbound.schemes",
            "TokenRecord": "fencerow.web.tokens.record",
            "WebhookTo": "fencerow.web.webhooks.declared",
            "WebhookAttempt": "fencerow.web.webhooks.looking",
            "Webhooks": "fencerow.web.webhooks.verbs",
            "deliver_webhooks": "fencerow.web.webhooks.fan_out",
            "receive_webhooks": "fencerow.web.inbound.declared",
            "told_to": "fencerow.web.webhooks.declared",
            "verify_webhook": "fencerow.web.webhooks.verifying",
            "worked_over_http": "fencerow.web.worked.declared",
        },
    )

__all__ = [
    "AddedEndpoint",
    "Answered",
    "Delivery",
    "Endpoint",
    "EndpointOptions",
    "GitHub",
    "Grant",
    "InboundWebhook",
    "Later",
    "NewToken",
    "Scope",
    "SeenWebhooks",
    "StandardWebhooks",
    "Stripe",
    "TokenRecord",
    "WebhookAttempt",
    "WebhookTo",
    "Webhooks",
    "answer",
    "deliver_webhooks",
    "receive_webhooks",
    "told_to",
    "verify_webhook",
    "worked_over_http",
]
