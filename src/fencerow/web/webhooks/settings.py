"""What the settings say of webhooks."""

from __future__ import annotations

from fencerow.core.config import CoreConfig
from fencerow.web.settings import WebSettings
from fencerow.web.webhooks.addresses import Allowed


def allowed_of(config: CoreConfig) -> Allowed:
    """Where webhooks may go beyond public addresses.

    Raises:
        ConfigError: the setting says nothing that can be understood.
    """
    text = WebSettings.of(config).webhook_allow or ""
    return Allowed.parsed([each for each in text.replace(",", " ").split() if each])
