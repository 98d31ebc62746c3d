"""The options of jobs and of submits, as type checkers and editors know them: those of the core, and those of wings.

A wing that offers options adds its TypedDict here. What they mean stands in the wing (`Wing.offers`).
"""

from __future__ import annotations

from fencerow.core.app.job_options import CoreContractOptions, HandlingOptions
from fencerow.core.app.options import CoreSubmitOptions
from fencerow.handovers.options import GivenHandover
from fencerow.turns.options import GivenTurns
from fencerow.unique.options import GivenUnique


class GivenSubmitOptions(CoreSubmitOptions, GivenTurns, GivenUnique, GivenHandover, total=False):
    """The options of `using`. None means the same as no option."""


class ContractOptions(CoreContractOptions, GivenTurns, GivenUnique, GivenHandover, total=False):
    """The options that a program needs to submit the job."""


class GivenOptions(ContractOptions, HandlingOptions, total=False):
    """All options of a job whose declaration is its handler."""
