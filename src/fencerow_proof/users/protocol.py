"""Enough of PostgreSQL's protocol to hold a statement, and to tell what it was and what was answered."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from uuid import UUID

QUERY, PARSE, BIND, EXECUTE, SYNC, DESCRIBE, CLOSE_STATEMENT = b"Q", b"P", b"B", b"E", b"S", b"D", b"C"
READY, KEY_DATA, ERROR, PARAMETERS, COLUMNS, NO_COLUMNS, ROW = b"Z", b"K", b"E", b"t", b"T", b"n", b"D"
Column = tuple[int, int]  # type and format
SHOWN_MAX = 200
VALUE_MAX = 60
ROWS_MAX = 5
INTEGERS, TEXTS = frozenset({20, 21, 23, 26}), frozenset({18, 19, 25, 114, 1042, 1043})
# What takes no snapshot and no lock: in which order it is sent makes no difference.
HARMLESS = (
    "BEGIN", "START TRANSACTION", "SET ", "SHOW ", "SAVEPOINT ", "RESET ", "DEALLOCATE ", "DISCARD ", "UNLISTEN",
)  # fmt: skip


def batches(source: socket.socket) -> Iterator[list[bytes]]:
    """Whole messages (type, length, body) as they come, until the connection ends."""
    rest = b""
    while data := source.recv(65536):
        rest += data
        found, at = [], 0
        while len(rest) - at >= 5:
            size = int.from_bytes(rest[at + 1 : at + 5], "big") + 1
            if len(rest) - at < size:
                break
            found.append(rest[at : at + size])
            at += size
        rest = rest[at:]
        if found:
            yield found


def is_harmless(text: str) -> bool:
    """Whether a statement neither reads, nor changes, nor locks, so that it needs no place in the order."""
    plain = text.strip().rstrip(";").upper()
    immediate = plain.startswith(("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"))
    return not immediate and ";" not in plain and (plain + " ").startswith(HARMLESS)


def in_one_line(text: str, limit: int = SHOWN_MAX) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


class Asked:
    """What a client sends: statements by name, and the text of what a group of messages makes the server run."""

    def __init__(self) -> None:
        self._texts: dict[bytes, str] = {}
        self._types: dict[bytes, Sequence[int]] = {}
        self._columns: dict[bytes, list[Column]] = {}
        self._described: deque[bytes] = deque()
        self._portals: dict[bytes, str] = {}
        self._of_portal: dict[bytes, str] = {}
        self.meant: list[str] = []  # the texts that were asked for since somebody took them, whole
        self.bound: list[
            Column
        ] = []  # the columns of the statement bound last, if they were asked for before

    def read(self, message: bytes) -> str | None:
        """Take a message; the statement that it makes the server run, with its values, if it does."""
        kind, body = message[:1], message[5:]
        if kind == QUERY:
            self.meant.append(_upto_nul(body)[0].decode("utf-8", "replace"))
            return in_one_line(self.meant[-1])
        if kind == PARSE:
            name, rest = _upto_nul(body)
            text, rest = _upto_nul(rest)
            self._texts[name] = text.decode("utf-8", "replace")
            (count,) = struct.unpack_from("!H", rest)
            self._types[name] = struct.unpack_from(f"!{count}I", rest, 2)
        elif kind == BIND:
            portal, rest = _upto_nul(body)
            name, rest = _upto_nul(rest)
            values, formats = _values(rest, self._types.get(name, ()))
            self.bound = _in_formats(self._columns.get(name, []), formats)
            told = f"  [{', '.join(values)}]" if values else ""
            self._of_portal[portal] = self._texts.get(name, "?")
            self._portals[portal] = in_one_line(self._texts.get(name, "?")) + told
        elif kind == DESCRIBE and body[:1] == b"S":
            self._described.append(_upto_nul(body[1:])[0])
        elif kind == EXECUTE:
            portal = _upto_nul(body)[0]
            self.meant.append(self._of_portal.get(portal, "?"))
            return self._portals.get(portal, "?")
        return None

    def learn(self, message: bytes) -> None:
        """The server's answer about a described statement: the types of its parameters, then its columns."""
        if not self._described:
            return
        if message[:1] == PARAMETERS:
            (count,) = struct.unpack_from("!H", message, 5)
            self._types[self._described[0]] = struct.unpack_from(f"!{count}I", message, 7)
        else:
            name = self._described.popleft()
            self._columns[name] = list(_columns(message[5:])) if message[:1] == COLUMNS else []


class Reply:
    """What a server sends in reply to one group."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self._rows: list[str] = []
        self._count = 0
        self._tags: list[str] = []
        self._error = ""

    def read(self, message: bytes) -> None:
        kind = message[:1]
        if kind == COLUMNS:
            self.columns = list(_columns(message[5:]))
        elif kind == ROW:
            self._count += 1
            if len(self._rows) < ROWS_MAX:
                self._rows.append(_row(message[5:], self.columns))
        elif kind == b"C":
            self._tags.append(_upto_nul(message[5:])[0].decode())
        elif kind == ERROR:
            fields = error_fields(message)
            self._error = f"{fields.get('C', '?')} {fields.get('M', '')}"

    def shown(self) -> str:
        """In a few words: the rows, how many were changed, or the error."""
        if self._error:
            return f" → ERROR {self._error}"
        if self._rows:
            more = f", … {self._count} rows" if self._count > len(self._rows) else ""
            return f" → {in_one_line(', '.join(self._rows) + more)}"
        tag = self._tags[-1] if self._tags else ""
        word, _, count = tag.rpartition(" ")
        if not count.isdigit():
            return ""
        return (
            f" → {'no row' if count == '0' else '1 row' if count == '1' else count + ' rows'}" if word else ""
        )


def error_fields(message: bytes) -> dict[str, str]:
    parts = message[5:].split(b"\0")
    return {part[:1].decode(): part[1:].decode("utf-8", "replace") for part in parts if part}


def error_message(code: str, text: str, detail: str) -> bytes:
    """An error as a server sends it."""
    fields = {"S": "ERROR", "V": "ERROR", "C": code, "M": text, "D": detail}
    body = b"".join(key.encode() + value.encode() + b"\0" for key, value in fields.items()) + b"\0"
    return ERROR + struct.pack("!I", len(body) + 4) + body


def _upto_nul(body: bytes) -> tuple[bytes, bytes]:
    head, _, rest = body.partition(b"\0")
    return head, rest


def _values(body: bytes, types: Sequence[int]) -> tuple[list[str], Sequence[int]]:
    """The values of a Bind message, from its formats on, and the formats of its results."""
    formats, at = _formats(body, 0)
    (count,) = struct.unpack_from("!H", body, at)
    at += 2
    found = []
    for number in range(count):
        how = (formats[number] if len(formats) > 1 else formats[0]) if formats else 0
        value, at = _field(body, at)
        found.append(_shown(value, how, types[number] if number < len(types) else 0))
    return found, _formats(body, at)[0]


def _formats(body: bytes, at: int) -> tuple[Sequence[int], int]:
    (count,) = struct.unpack_from("!H", body, at)
    return struct.unpack_from(f"!{count}H", body, at + 2), at + 2 + 2 * count


def _in_formats(columns: Sequence[Column], formats: Sequence[int]) -> list[Column]:
    if len(formats) == 1:
        return [(kind, formats[0]) for kind, _ in columns]
    return [(kind, how) for (kind, _), how in zip(columns, formats, strict=False)]


def _columns(body: bytes) -> Iterator[Column]:
    (count,) = struct.unpack_from("!H", body)
    at = 2
    for _ in range(count):
        at = body.index(b"\0", at) + 1
        _, _, kind, _, _, how = struct.unpack_from("!IHIHiH", body, at)
        at += 18
        yield kind, how


def _row(body: bytes, columns: Sequence[Column]) -> str:
    (count,) = struct.unpack_from("!H", body)
    at, found = 2, []
    for number in range(count):
        value, at = _field(body, at)
        kind, how = columns[number] if number < len(columns) else (0, 0)
        found.append(_shown(value, how, kind))
    return f"({', '.join(found)})"


def _field(body: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from("!i", body, at)
    if size < 0:
        return None, at + 4
    return body[at + 4 : at + 4 + size], at + 4 + size


def _shown(value: bytes | None, how: int, kind: int) -> str:
    """A value for people, whether it came as text or in binary."""
    if value is None:
        return "NULL"
    if how == 0 or kind in TEXTS:
        return in_one_line(value.decode("utf-8", "replace"), VALUE_MAX)
    if kind in INTEGERS:
        return str(int.from_bytes(value, "big", signed=True))
    if kind == 16:
        return "t" if value == b"\x01" else "f"
    if kind == 2950 and len(value) == 16:
        return str(UUID(bytes=value))
    if kind in (700, 701):
        return str(struct.unpack("!f" if kind == 700 else "!d", value)[0])
    return in_one_line("0x" + value.hex(), VALUE_MAX)
