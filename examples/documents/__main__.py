"""The whole show in one terminal: `python -m examples.documents`. It takes some seconds and needs no server."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile

from fencerow.core.model.text import amount

WAIT_S = 120.0
TORN = "annual_report.pdf"  # of which the second page cannot be read
SHOWN = (TORN, "contract.pdf", "receipt.pdf")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="documents-") as folder:
        os.environ.setdefault("FENCEROW_URL", f"sqlite:///{folder}/documents.db")
        logging.basicConfig(filename=f"{folder}/show.log")
        asyncio.run(show())
    return 0


async def show() -> None:
    # Only now: the app reads its settings from the environment when it is imported.
    from examples.documents.jobs import app, reading
    from fencerow.demo.show import samples

    async with app:
        chosen = [path for path in samples() if path.name in SHOWN]
        flows = {path: await reading(path, torn=2 * (path.name == TORN)).asubmit() for path in chosen}
        # A worker for the first stage alone: the second is still to come when the fields can be read.
        async with app.worker(["documents"]):
            for path, flow in flows.items():
                await (await flow.ajob_named("fields")).aresult(timeout_s=WAIT_S)
                early = await flow.aresult()
                print(
                    f"{path.name}: {amount(len(early['fields']), 'field')}, while the places are still to come"
                )
        async with app.worker():
            for path, flow in flows.items():
                late = await flow.aresult(wait_for="places", timeout_s=WAIT_S)
                there = sum(map(len, late["places"].values()))
                missing = "".join(f"; {page} is missing: {why}" for page, why in late["missing"].items())
                print(
                    f"{path.name}: {amount(there, 'place')} on {amount(len(late['places']), 'page')}{missing}"
                )


if __name__ == "__main__":
    raise SystemExit(main())
