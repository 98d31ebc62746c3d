"""Jobs of a main program: its children import its file, without what stands under `if __name__ == "__main__"`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kit.pace import PATIENCE_S

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, os
from fencerow import App, Config, Job

app = App(config=Config(url="sqlite:///jobs.db", poll_max_s=0.1))

@app.job(process=True)
def where() -> list[object]:
    return [os.getpid(), __name__]

async def main():
    async with app.worker():
        pid, module = await (await where.asubmit()).aresult(60)
    print(pid != os.getpid(), module)
    await app.aclose()

if __name__ == "__main__":
    asyncio.run(main())
"""
PROMPT = """
from fencerow import App, FencerowError
app = App("sqlite:///jobs.db")
@app.job(process=True)
def where() -> int:
    return 1
try:
    app.worker()
except FencerowError as error:
    print(error)
"""


def run(folder: Path, *arguments: str, given: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_job_of_the_main_program_runs_in_a_child(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    assert run(tmp_path, "program.py") == "True __mp_main__"
    assert run(tmp_path, "-m", "program") == "True program"


def test_a_job_that_was_typed_at_a_prompt_is_refused(tmp_path: Path) -> None:
    told = run(tmp_path, "-", given=PROMPT)

    assert "FR-106" in told
    assert "typed at a prompt" in told
