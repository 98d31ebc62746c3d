"""The output of running jobs: an ordered stream of chunks that others read while it comes.

    @app.job
    async def answer(question: str, job: Job) -> str:
        async for token in model.stream(question):
            await job.emit(token)

    for chunk in app.client.output(handle.id):
        print(chunk.data, end="")

The guide: docs/guide/output.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.output.errors import ChunkRefused, OutputNotPossible, OutputSpent
    from fencerow.output.model import Chunk
else:
    __getattr__ = lazily(
        __name__,
        {
            "Chunk": "fencerow.output.model",
            "ChunkRefused": "fencerow.output.errors",
            "OutputNotPossible": "fencerow.output.errors",
            "OutputSpent": "fencerow.output.errors",
        },
    )

__all__ = ["Chunk", "ChunkRefused", "OutputNotPossible", "OutputSpent"]
