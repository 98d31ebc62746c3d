"""For tests of your jobs on real databases: `drain`, `submitted`, `assert_submitted`, a private server, a moved clock.

The pytest plugin has fixtures for them; docs/testing.md shows all. What plays races and kills is in `fencerow_proof`.

The guide: docs/testing.md.
"""

from fencerow.core.answering import answer
from fencerow.testing.binding import Clock, bound
from fencerow.testing.drain import adrain, drain
from fencerow.testing.postgres import PostgresServer
from fencerow.testing.ran import Ran
from fencerow.testing.scratch import ScratchDatabase
from fencerow.testing.submissions import assert_submitted, asubmitted, submitted

__all__ = [
    "drain",
    "adrain",
    "Ran",
    "submitted",
    "asubmitted",
    "assert_submitted",
    "bound",
    "Clock",
    "ScratchDatabase",
    "PostgresServer",
]

for each in (Clock, PostgresServer, ScratchDatabase):
    answer(each)
