"""Tools for testing against real databases: what Fencerow is tested with is what it ships.

`explore` plays your own operations in every order of their statements; `drain`, `submitted` and
`assert_submitted` are for tests of your jobs. The pytest plugin has fixtures for both; docs/testing.md shows all.

The guide: docs/testing.md.
"""

from fencerow.testing.binding import Clock, bound
from fencerow.testing.drain import Ran, adrain, drain
from fencerow.testing.explorer.explore import explore
from fencerow.testing.explorer.styles import Answer
from fencerow.testing.explorer.told import Exploration, Played, Violation
from fencerow.testing.postgres import PostgresServer
from fencerow.testing.scratch import ScratchDatabase
from fencerow.testing.submissions import assert_submitted, submitted

__all__ = [
    "drain",
    "adrain",
    "Ran",
    "submitted",
    "assert_submitted",
    "bound",
    "Clock",
    "ScratchDatabase",
    "PostgresServer",
    "explore",
    "Exploration",
    "Played",
    "Answer",
    "Violation",
]
