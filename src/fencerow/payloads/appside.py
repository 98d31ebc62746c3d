"""How an app stores payloads: in the rows, or large ones outside, by what its settings say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError
from fencerow.core.model.packing import Packing
from fencerow.payloads.settings import PayloadSettings

if TYPE_CHECKING:
    from fencerow.payloads.outside.owner import OwnStore
    from fencerow.payloads.outside.store import PayloadStore


def packing_and_store(
    config: CoreConfig, inside: Packing, given: PayloadStore | None, ready: Callable[[], None]
) -> tuple[Packing, OwnStore | None]:
    """How payloads are packed, and the store outside, if there is one. `given`: the program's own store, instead of
    the one that the settings name. `ready`: called before the store is first used.

    Raises:
        ConfigError: the settings name no store that can be used.
    """
    if isinstance(given, str):
        raise ConfigError(
            "outside= is text",
            "a store is expected, with the methods of PayloadStore; the address of a folder or bucket is a setting",
            "write Config(outside_store=...), or set FENCEROW_OUTSIDE_STORE",
        )
    settings, store = PayloadSettings.of(config), given
    if store is None and settings.outside_store is not None:
        from fencerow.payloads.outside.places import store_at

        store = store_at(settings.outside_store)
    if store is None:
        return inside, None
    from fencerow.payloads.outside.calls import StoreCalls
    from fencerow.payloads.outside.owner import OwnStore
    from fencerow.payloads.outside.packing import OutsidePacking

    own = OwnStore(store, StoreCalls(settings.outside_timeout_s), ready)
    return OutsidePacking(inside, own, settings.outside_bytes_min), own
