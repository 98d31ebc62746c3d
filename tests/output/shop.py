"""An application whose job emits from a child process. Imported by the child, too."""

from __future__ import annotations

from fencerow import App, Job

app = App("sqlite:///unused.db")  # a worker of the tests brings its own database


@app.job(process=True)
def tells(job: Job) -> int:
    for number in range(3):
        job.emit(f"{number}")
    return 3
