"""The endpoints of the guide, in three languages: each works a job, and takes nothing that is not signed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from fencerow import App
from fencerow.testing import adrain
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S
from tests.web.worked.stage import SECRET, SECRET_ENV, Endpoint, config_for, render_job

PAGE = (ROOT / "docs" / "guide" / "worked-over-http.md").read_text("utf-8")
SECTIONS = {"python": "## In Python", "go": "## In Go", "js": "## In JavaScript or TypeScript"}


def block(language: str) -> str:
    """The program of that section."""
    return PAGE.split(SECTIONS[language])[1].split(f"```{language}\n")[1].split("```")[0]


@contextmanager
def running(language: str, folder: Path) -> Iterator[int]:
    """The endpoint in that language, and its port."""
    environment = os.environ | {"RENDER_KEY": SECRET, "PORT": "0", "GOCACHE": str(folder / "cache")}
    command = _command(language, folder, environment)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().removeprefix("listening on "))
        finally:
            process.terminate()
            process.stdout.read()


def _command(language: str, folder: Path, environment: dict[str, str]) -> list[str]:
    if language == "python":
        (folder / "endpoint.py").write_text(block(language))
        return [sys.executable, str(folder / "endpoint.py")]
    found = shutil.which({"js": "node", "go": "go"}[language])
    if found is None:
        pytest.skip(f"nothing on this machine runs {language}")
    source = folder / {"js": "endpoint.mjs", "go": "endpoint.go"}[language]
    source.write_text(block(language))
    if language == "js":
        return [found, str(source)]
    program = folder / "endpoint"  # built first: `go run` would leave its child behind
    subprocess.run([found, "build", "-o", program, source], env=environment, check=True)
    return [str(program)]


@pytest.mark.parametrize("language", ["python", "js", pytest.param("go", marks=pytest.mark.prove)])
async def test_an_endpoint_of_the_guide_works_a_job(
    language: str, migrated_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_ENV, SECRET)
    with running(language, tmp_path) as port:
        endpoint = Endpoint(url=f"http://127.0.0.1:{port}/jobs")
        async with App(f"sqlite:///{migrated_path}", config=config_for(endpoint)) as app:
            await render_job(app, endpoint).asubmit("a.pdf")
            (ran,) = await adrain(app, check=True)
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        unsigned = {"webhook-id": "a", "webhook-timestamp": "0", "webhook-signature": "v1,"}
        connection.request("POST", "/jobs", b"{}", unsigned)
        refused = connection.getresponse().status
        connection.close()

    assert (ran.outcome, ran.result, refused) == ("succeeded", {"rendered": "a.pdf"}, 400)
