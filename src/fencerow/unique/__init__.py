"""Unique jobs: a submit under a key stores a job, finds the one that is there, or gives it what the new one says.

    @app.job(unique=lambda report_id, **_: report_id)
    async def render(report_id: str) -> None: ...

The guide: docs/guide/unique.md.
"""
