"""Schemathesis against a real gateway: requests that fit the document and requests that do not, and what it makes of
the answers.

It is a program of its own with many packages, so it has an environment of its own: `pip install -r
requirements/attack.txt`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import Any

from tools.attack.place import Place, under_attack

# Not asked: whether all that fits is accepted (no such job, no such limit), and what a job of an answer before is now.
LEFT_OUT = "positive_data_acceptance,use_after_free,ensure_resource_availability"
# A stream lasts as long as its reader stays, and a wait as long as it says. Under maintenance all else is refused.
NOT_ASKED = ("getEvents", "beginMaintenance")


def examined(engine: str, limit_s: float, seed: int) -> dict[str, Any]:
    """Let it ask for so many seconds, and tell what it found."""
    program = os.environ.get("SCHEMATHESIS", "schemathesis")
    if shutil.which(program) is None:
        raise SystemExit(
            f"{program} is not there: pip install -r requirements/attack.txt, or set SCHEMATHESIS"
        )
    with under_attack(engine) as place, tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            _command(program, place, max(1, int(limit_s)), seed),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        said = re.sub(r"fct_[\w-]+", "<token>", done.stdout + done.stderr)
        return {
            "stands": done.returncode == 0 and place.tracebacks() == 0,
            "tracebacks_in_the_log": place.tracebacks(),
            "memory_mib_at_most": round(place.memory_mib("VmHWM"), 1),
            "said": [line for line in said.splitlines() if line.strip()][-200:],
        }


def _command(program: str, place: Place, limit_s: int, seed: int) -> list[str]:
    at = f"http://127.0.0.1:{place.port}"
    command = [program, "run", f"{at}/openapi.json", "--exclude-checks", LEFT_OUT]
    command += ["--max-time", str(limit_s), "--seed", str(seed), "--workers", "2", "--continue-on-failure"]
    command += ["--phases", "coverage,fuzzing", "--request-timeout", "90", "--no-color", "--no-shrink"]
    command += ["--suppress-health-check", "all", "-H", f"Authorization: Bearer {place.tokens['all']}"]
    for name in NOT_ASKED:
        command += ["--exclude-operation-id", name]
    return command
