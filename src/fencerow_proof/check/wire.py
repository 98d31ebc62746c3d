"""What the director and the processes it starts say to one another: JSON documents, each behind its length."""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from fencerow.core.model.job import Claimed
from fencerow.processes.wire import LENGTH, framed
from fencerow_proof.check.kinds import Action


class Declared(msgspec.Struct, frozen=True):
    """An outside call as the user declared it: `target` is `module:name`; the others see `Outside`.

    `repeatable`: to make it again does no harm, such as a question; that it is made at all still counts.
    """

    target: str
    key: str | None = None
    answer: str | None = None
    repeatable: bool = False


# --- to the warm process, and its answers --------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Fork a starter with this environment (`NAME=value`), in this folder; what it and its forks say goes to the log.

    Both are bytes, as the system has them: neither need be text.
    """

    address: str
    log: str
    folder: bytes
    environment: list[bytes]


class Started(msgspec.Struct, frozen=True, tag="started"):
    """It is there."""

    pid: int


class End(msgspec.Struct, frozen=True, tag="end"):
    """End this starter."""

    pid: int


class Over(msgspec.Struct, frozen=True, tag="over"):
    """It has ended."""


# --- to the starter -----------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import the application and find the job. `app` is `module:name`, or empty: the job's module knows it.

    `is_stored`: `job` is the name of a stored one, and its arguments come with the attempt.
    """

    path: list[str]
    job: str
    app: str
    args: str
    outside: list[Declared]
    setup: str | None
    is_stored: bool = False


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Make a process that plays this part and connects under this number."""

    number: int
    url: str
    part: Prepare | Play


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Make all tables and submit the job under each of these ids."""

    ids: list[str]


class Play(msgspec.Struct, frozen=True, tag="play"):
    """Run this attempt."""

    claimed: Claimed
    holder: str
    allowed: list[str]
    folder: str
    passed_s: float = 0.0  # by the database's clock, since the pattern was made


# --- from a process ------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first word of each process; the starter's number is 0."""

    number: int
    pid: int


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """What the application is: what the director needs to claim its job."""

    dialect: str
    schema: str
    table_prefix: str
    name: str
    queue: str
    priority: int
    file: str  # of the SQLite database it names, whose place in the scratch folder is the first
    counting: list[
        str
    ] = []  # columns and tables in which declared moves count every try: `table.column`, `table.*`


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """It could not be done. `kind` is the name of the error."""

    kind: str
    what: str
    why: str
    fix: str


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The tables are there, and the job is queued."""


class Before(msgspec.Struct, frozen=True, tag="before"):
    """This action comes next; the process waits for its leave."""

    action: Action


class After(msgspec.Struct, frozen=True, tag="after"):
    """The action of that number is over; `error` when it failed."""

    number: int
    error: str | None = None


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """The SQLite file is locked by another; the process waits to be told whether to try again."""


class Seen(msgspec.Struct, frozen=True, tag="seen"):
    """Something that nobody declared, and that was not held up."""

    action: Action


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The handler is over. `outcome` names its verdict; `result` is that of a success.

    `back_in_s`: it put the job back by itself (`Snooze`, `Retry`), for so long. `raised`: the type of its error.
    `follow_ups`: what was to be submitted with its success, by name and arguments.
    """

    outcome: str
    result: str | None = None
    error: str | None = None
    place: str | None = None
    back_in_s: float | None = None
    raised: str | None = None
    follow_ups: list[tuple[str, str]] = []


# --- to a process ----------------------------------------------------------------------------------------


class Go(msgspec.Struct, frozen=True, tag="go"):
    """Do the action, or try again what was busy."""


class Fail(msgspec.Struct, frozen=True, tag="fail"):
    """Let the action fail as it would if what it depends on were down, or give up waiting for the lock."""


FromProcess = Started | Over | Hello | Loaded | Refused | Prepared | Before | After | Busy | Seen | Ended
ToProcess = Start | End | Load | Fork | Go | Fail

_from_process = msgspec.json.Decoder(FromProcess)
_to_process = msgspec.json.Decoder(ToProcess)


class Channel:
    """One end of a connection, blocking. Each side reads the messages of the other's type."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(None)  # whatever time-out the application gives to new ones
        self._connection = connection

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: msgspec.Struct) -> None:
        """Say something.

        Raises:
            OSError: nobody is there any more.
        """
        self._connection.sendall(framed(message))

    def heard_from_process(self) -> FromProcess | None:
        """The next message of a process, or None at its end."""
        frame = self._frame()
        return None if frame is None else _from_process.decode(frame)

    def heard_from_director(self) -> ToProcess | None:
        """The next message of the director, or None at its end."""
        frame = self._frame()
        return None if frame is None else _to_process.decode(frame)

    def close(self) -> None:
        self._connection.close()

    def _frame(self) -> bytes | None:
        head = self._received(LENGTH.size)
        if head is None:
            return None
        size: Any = LENGTH.unpack(head)[0]
        return self._received(size)

    def _received(self, size: int) -> bytes | None:
        found = bytearray()
        while len(found) < size:
            try:
                part = self._connection.recv(size - len(found))
            except ConnectionError:
                return None
            if not part:
                return None
            found += part
        return bytes(found)
