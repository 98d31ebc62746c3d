"""Tools for testing against real databases: what Fencerow is tested with is what it ships.

from fencerow.testing import explore

def withdraw(connection): ...

explore(url, {"a": withdraw, "b": withdraw}, setup="...", invariants={"no debt": "SELECT ..."})
"""

from fencerow.testing.explorer.explore import Exploration, Played, Violation, explore
from fencerow.testing.explorer.styles import Answer

__all__ = ["explore", "Exploration", "Played", "Violation", "Answer"]
