"""The whole show in one terminal: `python -m examples.documents`. Some seconds, real HTTP, real processes, kill -9."""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path


def main(url: str | None) -> int:
    with tempfile.TemporaryDirectory(prefix="documents-") as name:
        folder = Path(name)
        os.environ["DOCUMENTS_FOLDER"] = str(folder)
        os.environ["FENCEROW_URL"] = url or f"sqlite:///{folder}/documents.db"
        logging.basicConfig(filename=folder / "show.log")
        # Only now: the app reads its settings from the environment when it is imported.
        from examples.documents.show import Show
        from examples.stage import played

        show = Show(folder)
        return played(show.scenes, show.end)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="examples.documents")
    parser.add_argument("--url", help="The database; by default a SQLite file of its own.")
    raise SystemExit(main(parser.parse_args().url))
