"""What the package of proofs adds to the command."""

from __future__ import annotations

import click

from fencerow_proof.check.command import check
from fencerow_proof.history.command import history
from fencerow_proof.rerun.command import rerun

COMMANDS: tuple[click.Command, ...] = (history, check, rerun)
