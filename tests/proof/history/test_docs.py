"""The code on docs/testing.md runs as it stands there, one block after another, against a real database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Job
from fencerow_proof.network.proxy import FaultProxy

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def of_histories() -> list[str]:
    """The blocks from the first that records on; those before it have tests of their own."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    first = next(number for number, block in enumerate(blocks) if "recording(" in block)
    return blocks[first:]


async def test_the_page_records_and_checks_a_run(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = of_histories()
    assert len(blocks) == 4, "record, effects, break, check"
    app = App(postgres_url)
    names: dict[str, Any] = {"app": app, "Job": Job}
    exec(blocks[0], names)  # noqa: S102 (our own page)
    exec(blocks[1], names)  # noqa: S102 (our own page)
    async with app.worker():
        handle = await names["pay"].asubmit(1)
        await handle.aresult(timeout_s=60)
    names["app"] = app
    exec(blocks[3], names)  # noqa: S102 (our own page)
    assert names["report"].looked["I5"] == 1
    await app.aclose()


def test_the_page_breaks_what_it_says() -> None:
    """The block about the proxy names what there is; its faults need a program to strike."""
    block = of_histories()[2]
    imports, _, body = block.partition("\n\n")
    names: dict[str, Any] = {}
    exec(imports, names)  # noqa: S102 (our own page)
    assert names["FaultProxy"] is FaultProxy
    for method in re.findall(r"proxy\.(\w+)", body):
        assert hasattr(FaultProxy, method) or method == "port"
    for phase in re.findall(r"Phase\.(\w+)", body):
        assert phase in names["Phase"].__members__
