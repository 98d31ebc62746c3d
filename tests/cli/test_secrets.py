"""`fencerow jobs show` hides what the application declares as secret."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli

VAULT = """
from typing import Annotated
from fencerow import App
from fencerow.payloads import Secret

app = App()

@app.job(name="unlock")
async def unlock(door: str, code: Annotated[str, Secret]) -> None: ...
"""


def test_what_the_application_calls_secret_is_hidden_and_kept(cli: Cli, url: str, tmp_path: Path) -> None:
    (tmp_path / "other_vault.py").write_text(VAULT)
    args = '{"door": "north", "code": "s3cr3t"}'
    job_id = cli("submit", "unlock", args, "-A", "other_vault:app").out.split()[0]

    shown = cli("jobs", "show", job_id, "-A", "other_vault:app")
    document = cli("jobs", "show", job_id, "-A", "other_vault:app", "--json")

    assert '"door": "north"' in shown.out and '"code": "(hidden, 6 characters)"' in shown.out
    assert "s3cr3t" not in shown.out and document.json["job"]["args"]["code"] == "s3cr3t"
