"""A process that behaves towards its supervisor as a worker does, or as none should. Without Fencerow it starts soon.

Arguments: a folder, and what a supervisor appends. A file `do-NUMBER` or `do` in the folder says how to behave. What
happens to it, it writes to the standard output.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

folder = Path(sys.argv[1])
number, descriptor = sys.argv[2].split(":")
files = [each for each in (folder / f"do-{number}", folder / "do") if each.exists()]
wanted = json.loads(files[0].read_text()) if files else {}
lifeline = socket.socket(fileno=int(descriptor))


def say(what: str) -> None:
    os.write(1, f"{number} {what} {os.getpid()}\n".encode())


def tell(last: dict[str, object] | None = None) -> None:
    vitals = {"phase": "running", "holds_lease": True, "slots": 10, "connections": 14}
    # A supervisor that was killed just now is told of by what is read next.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        lifeline.sendall(json.dumps(vitals | (last or wanted.get("vitals", {}))).encode() + b"\n")


def caught(signal_number: int, frame: object) -> None:
    say(signal.Signals(signal_number).name)


for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(each, caught)
if wanted.get("hangs"):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as it is while the application is being imported
    say("hangs")
    signal.pause()
if "exit" in wanted:
    say("refuses")
    sys.exit(wanted["exit"])
say("up")
tell()
say("ready")
if "orphan" in wanted and not os.fork():
    say("orphan")
    select.select([lifeline], [], [])  # until the supervisor has buried its parent
    sys.exit(0)
if "last" in wanted:
    tell(wanted["last"])
if "leave" in wanted:
    sys.exit(wanted["leave"])
while True:
    if not select.select([lifeline], [], [], 0.1)[0]:
        tell()
        continue
    try:
        order = lifeline.recv(64)
    except ConnectionResetError:  # it was killed before it had read all of ours
        order = b""
    say({b"t": "leaves", b"!": "hurries", b"": "gone"}.get(order, "both"))
    if order != b"t" or not wanted.get("lingers"):
        sys.exit(wanted.get("code", 0))
