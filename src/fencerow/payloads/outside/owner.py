"""Whose a store of large payloads is: what one database put there, no other removes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from fencerow.core.errors import ConfigError, PayloadMissing
from fencerow.db.run import Steps, execute, operation
from fencerow.payloads.outside.calls import StoreCalls
from fencerow.payloads.outside.names import OWNER, What, new_name
from fencerow.payloads.outside.store import PayloadStore

SHOWN_MAX = 200  # bytes of a mark
LOOKED_AT = 100  # objects of a store without a mark: its first are others', or they are ours


@operation(alone=True, repeatable=True, writes="")
def database_of_payloads() -> Steps[str]:
    """The id of this database, which was made by chance."""
    ((own,),) = yield from execute("database_of_payloads")
    return str(own)


class OwnStore:
    """A store as one database has it, and how it is called. May be used by several threads at once.

    `look`: looks at the database, and says by `told` which it is.
    """

    def __init__(self, store: PayloadStore, calls: StoreCalls, look: Callable[[], None]) -> None:
        self.store = store
        self.calls = calls
        self._look = look
        self._own = ""
        self._is_claimed = False

    def told(self, own: str) -> None:
        """Which database it is."""
        if own != self._own:
            self._own, self._is_claimed = own, False

    def put(self, job_id: str, what: What, data: bytes) -> str:
        """Keep the data under a new name, which is returned. Before the first one the store is claimed. Blocks.

        Raises:
            ConfigError: the store is not this database's. StoreUnavailable: it does not answer.
        """
        if not self._own:
            self._look()
        own = self._own
        if not self._is_claimed:
            claim(self.store, own)
            self._is_claimed = True
        name = new_name(own, job_id, what)
        self.store.put(name, data)
        return name


def claim(store: PayloadStore, own: str) -> None:
    """Mark a store that is empty as this database's; one that has its mark stays as it is. May be repeated.

    Raises:
        ConfigError: it has another's mark, or things that this database did not put there. Nothing was written.
    """
    names = [each.name for each in islice(store.list(""), LOOKED_AT)]
    if names and check_owner(store, own):
        return
    if others := others_of(names, own):
        raise ConfigError(
            f"outside_store is not empty: it has {others[0][:200]}",
            "this database has put nothing there, and shares its store with nobody",
            "name a folder or prefix in outside_store that is empty",
        )
    store.put(OWNER, own.encode())
    check_owner(store, own)  # of two that marked it at once, one is told


def check_owner(store: PayloadStore, own: str) -> bool:
    """Whether the store has this database's mark; False: it has none.

    Raises:
        ConfigError: it has another's.
    """
    try:
        found = store.get(OWNER, SHOWN_MAX)
    except PayloadMissing:
        return False
    if found != own.encode():
        raise ConfigError(
            f"outside_store belongs to the database {found.decode(errors='replace')[:SHOWN_MAX]}",
            f"this one is {own}: it stores nothing there, and removes nothing",
            "give each database a folder or prefix of its own",
        )
    return True


def others_of(names: Sequence[str], own: str) -> list[str]:
    """Those that are neither below this database's id nor the mark."""
    return [name for name in names if not name.startswith((f"{own}/", OWNER))]
