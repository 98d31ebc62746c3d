"""From files to acts: invokes and ends are put together, and what has no end stays undecided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow_proof.history.acts import NEVER, Act, History, Source
from fencerow_proof.history.line import VERSION, Kind, Line
from fencerow_proof.history.recorder import SUFFIX

_decoder = msgspec.json.Decoder(Line)
SLACK_OF_HOSTS_US = 1_000_000


def read_history(paths: Iterable[str | Path]) -> History:
    """Read files, and all history files in folders, into one history.

    Raises:
        InvalidInput: there is no such file, or it is no history. A torn last line is none of that.
    """
    history = History()
    for path in _files(paths):
        _read(history, path)
    _align(history)
    return history


def _files(paths: Iterable[str | Path]) -> list[Path]:
    found: list[Path] = []
    for each in paths:
        path = Path(each)
        if path.is_dir():
            found += sorted(path.rglob(f"*{SUFFIX}"))
        elif path.is_file():
            found.append(path)
        else:
            raise InvalidInput(
                f"there is no history at {path}", "a file or a folder of them is expected", "check the path"
            )
    if not found:
        raise InvalidInput(
            "no history was found",
            f"files that end with {SUFFIX} are expected",
            "record one: recording(app, folder)",
        )
    return list(dict.fromkeys(path.resolve() for path in found))


@dataclass(slots=True)
class _Open:
    """An invoke that waits for its end."""

    line: Line
    number: int
    ended: bool = False


@dataclass
class _Reading:
    """One file under way. `open` holds the invokes of each step without an end so far."""

    history: History
    file: int
    open: dict[tuple[int, int], list[_Open]] = field(default_factory=dict[tuple[int, int], list[_Open]])
    last: tuple[int, int] = (0, 0)

    def take(self, line: Line, number: int) -> None:
        step = (line.op, line.step)
        if step != self.last:
            self._close(self.last)
            self.last = step
        if line.kind is Kind.INVOKE:
            self.open.setdefault(step, []).append(_Open(line, number))
        else:
            self._end(step, line, number)

    def finish(self, torn: bool) -> None:
        """What is open stays undecided; so does a step whose ends were torn off."""
        if not torn:
            self._close(self.last)
        for waiting in self.open.values():
            for each in waiting:
                self.history.add(self._act(each.line, each.number, None, 0))

    def _end(self, step: tuple[int, int], line: Line, number: int) -> None:
        waiting = self.open.get(step, [])
        for index, each in enumerate(waiting):
            if each.line.job is not None and each.line.job == line.job and each.line.key == line.key:
                del waiting[index]
                self.history.add(self._act(each.line, each.number, line, number))
                return
        jobless = [each for each in waiting if each.line.job is None]
        for each in jobless:
            each.ended = True
        alike = [
            each for each in jobless if each.line.verb == line.verb
        ]  # a claim that gives turns is two verbs
        first = next(iter(alike or jobless or waiting), _Open(line, number))
        self.history.add(self._act(first.line, first.number, line, number))

    def _close(self, step: tuple[int, int]) -> None:
        """All ends of a step come in one write: once another begins, its jobless invokes are answered."""
        waiting = self.open.get(step)
        if waiting is not None:
            left = [each for each in waiting if not each.ended]
            if left:
                self.open[step] = left
            else:
                del self.open[step]

    def _act(self, invoke: Line, started: int, end: Line | None, ended: int) -> Act:
        """An act, with what its end says of the job and what its invoke says besides."""
        kind = Kind.INFO if end is None else end.kind
        told = invoke if end is None else end
        return Act(
            verb=invoke.verb,
            kind=kind,
            start_us=invoke.mono_us,
            end_us=NEVER if end is None or kind is Kind.INFO else end.mono_us,
            op=(self.file, invoke.op),
            lines=(started, ended),
            job=told.job,
            attempt=told.attempt,
            holder=told.holder or (invoke.holder if end is not None and end.job is None else None),
            state=told.state,
            how=told.how,
            queue=told.queue,
            name=told.name,
            suspect=told.suspect,
            new=told.new,
            scope=told.scope,
            key=told.key,
            fingerprint=told.fingerprint,
            exclusive=told.exclusive,
            exclusive_at_once=told.exclusive_at_once,
            affinity=told.affinity,
            labels=told.labels,
            strict=told.strict,
            limits=told.limits,
            limit=invoke.limit,
            slots=told.slots,
            lease_s=told.lease_s,
            code=None if end is None else end.code,
            tries=told.tries or 1,
        )


def _read(history: History, path: Path) -> None:
    reading = _Reading(history, len(history.sources))
    head: Line | None = None
    torn = False
    with path.open("rb") as file:
        for number, raw, whole in _lines(file):
            if not whole:
                torn = True
                break
            line = _decoded(raw, path, number)
            if line.kind is Kind.BEGIN:
                head = _head(line, path)
            elif head is None:
                raise _no_history(path, number, "its first line is no head")
            else:
                reading.take(line, number)
    reading.finish(torn)
    history.sources.append(_source(path, head, torn))


def _lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Lines with their numbers, and whether they were written to their end."""
    for number, raw in enumerate(file, 1):
        yield number, raw, raw.endswith(b"\n")


def _decoded(raw: bytes, path: Path, number: int) -> Line:
    try:
        return _decoder.decode(raw)
    except msgspec.DecodeError as error:
        raise _no_history(path, number, str(error)) from error


def _head(line: Line, path: Path) -> Line:
    if (line.version or 0) > VERSION:
        raise InvalidInput(
            f"{path} is a history of version {line.version}",
            f"{VERSION} is known here",
            "use a newer Fencerow",
        )
    return line


def _source(path: Path, head: Line | None, torn: bool) -> Source:
    if head is None:  # killed before the head was out
        return Source(path, "", "", 0, None, torn)
    return Source(path, head.process, head.boot or "", (head.wall_us or 0) - head.mono_us, head.sweep_s, torn)


def _align(history: History) -> None:
    """Sort the acts of each job. Histories of several machines are brought to wall time, which may differ a little."""
    boots = {source.boot for source in history.sources if source.boot}
    if len(boots) > 1:
        history.slack_us = SLACK_OF_HOSTS_US
        for act in _all(history):
            shift_us = history.sources[act.op[0]].wall_minus_mono_us
            act.start_us += shift_us
            act.end_us = act.end_us if act.end_us == NEVER else act.end_us + shift_us
    for acts in history.by_job.values():
        acts.sort(key=lambda act: act.start_us)
    history.others.sort(key=lambda act: act.start_us)


def _all(history: History) -> Iterator[Act]:
    yield from history.others
    for acts in history.by_job.values():
        yield from acts


def _no_history(path: Path, number: int, why: str) -> InvalidInput:
    return InvalidInput(
        f"{path} line {number} is no line of a history", why, "pass only files that `recording` has written"
    )
