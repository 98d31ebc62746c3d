"""Handlers that a check refuses, or that leave the process without being declared."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence

from fencerow import App
from fencerow.batches import BatchItem
from fencerow_proof.check import outside_call

app = App()


@app.job
def idle(order: int) -> None:
    """It does nothing."""


@app.job
def without_table(order: int) -> None:
    with sqlite3.connect("shop.db") as shop:
        shop.execute("INSERT INTO nowhere VALUES (1)")  # fault: without_table


@app.job
def calls_out(order: int) -> None:
    socket.create_connection(("127.0.0.1", 9), timeout=1).close()  # fault: calls_out


@app.job
def starts_a_program(order: int) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)  # fault: starts_a_program


@app.job
def calls_in_a_fake(order: int) -> None:
    with outside_call("mail"):  # fault: calls_in_a_fake
        pass


@app.job
def waits_for_ever(order: int) -> None:
    sqlite3.connect("shop.db").execute("CREATE TABLE once (n)")
    while True:
        pass


@app.batch_job
async def many(items: Sequence[BatchItem[int, None]]) -> None:
    """One call is the run of many jobs."""
