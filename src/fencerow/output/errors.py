"""Errors of the output of jobs (966 to 968)."""

from __future__ import annotations

from fencerow.db.errors.input import InvalidInput


class OutputNotPossible(InvalidInput):
    """Something was emitted where no output is kept: in an ephemeral job, while `job.transaction()` is
    open, or after the handler had ended. Nothing of it was stored."""

    code = "FR-966"
    retryable = False


class ChunkRefused(InvalidInput):
    """A chunk is too large, or is neither text nor bytes nor JSON data. It was not stored, and what came before stands.
    Emit it in parts, or emit where the data is."""

    code = "FR-967"
    retryable = False


class OutputSpent(InvalidInput):
    """A job has emitted as many chunks, or as many bytes, as it may, in all its attempts together. The chunk was not
    stored. Emit less, or more in one chunk; or raise `output_chunks_max` or `output_bytes_max`."""

    code = "FR-968"
    retryable = False
