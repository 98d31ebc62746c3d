"""What do sealed and signed arguments cost, a submit and a start?

    python bench/payloads.py

In memory, without a database: what is added to each job. The best of 30 rounds of 300 jobs, in turns.
"""

from __future__ import annotations

import platform
import secrets
import time
from typing import Any

from fencerow import App
from fencerow.payloads import Seal, Sign

ROUNDS, JOBS = 30, 300
CARD = "4111111111111111"


def declared(**options: Any) -> Any:
    """A job of an app that opens no database."""
    app = App("sqlite:///unused.db", **options)

    @app.job
    def charge(card: str, cents: int) -> str:
        return f"{cents} from {card}"

    return app._submitter.as_stored, charge  # pyright: ignore[reportPrivateUsage]


def measured(as_stored: Any, charge: Any) -> tuple[float, float, int]:
    """Microseconds to make what is stored, and to read it; and the bytes of one."""
    calls = [charge.call(CARD, number) for number in range(JOBS)]
    began = time.perf_counter()
    stored = [as_stored(call) for call in calls]
    made = time.perf_counter()
    for each in stored:
        charge.handler.plain_arguments(each.id, each.args.encode(), 1)
    read = time.perf_counter()
    return (made - began) / JOBS * 1e6, (read - made) / JOBS * 1e6, len(stored[0].args)


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}", flush=True)
    keys = {"a": secrets.token_bytes(32)}
    apps = {
        "plain": declared(),
        "signed": declared(seal=Sign(keys)),
        "sealed": declared(seal=Seal(keys, marks=secrets.token_bytes(32))),
    }
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in apps}
    for _ in range(ROUNDS):
        for name, app in apps.items():
            found[name].append(measured(*app))
    for name, rounds in found.items():
        submit, start = (min(each[part] for each in rounds) for part in (0, 1))
        print(f"{name}: submit {submit:.1f} us, start {start:.1f} us, {rounds[0][2]} bytes")


if __name__ == "__main__":
    main()
