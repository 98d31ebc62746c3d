"""A client process of a storm: submits in every way, changes, cancels, waits, revives, and writes down each answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg

from fencerow import Config, FencerowError, Handle, JobCancelled, JobFailed, ResultTimeout
from tests.proof.storm.plan import CLIENT_SETTINGS, PAUSED
from tests.proof.storm.post import Post
from tests.proof.storm.record import Record
from tests.proof.storm.work import HEAVY, Work, arguments_of, loaded, number_in

T = TypeVar("T")

TURNS = 10  # callers in the event loop; one more is a thread that uses the plain methods
KEYS_FROM, STRANGE_FROM = 900_000_000_000, 950_000_000_000
NUMBERS_EACH = 10_000_000
ASYNC_KINDS = {
    "pay": 16, "pay_plain": 8, "pay_again": 8, "look": 16, "read": 8, "nap": 7, "slow": 10, "slow_plain": 10, "long": 8,
    "doomed": 2, "parcel": 12, "keyed": 10, "bulk": 1, "limited": 8, "limited_plain": 6, "guarded": 10,
    "wedge": 1, "turn": 12, "strict": 8, "pair": 6, "metered": 10, "both": 6, "narrow": 8, "labelled": 8,
    "heavy": 13, "heavy_plain": 8, "shared": 10, "fragile": 4, "elsewhere": 6, "paused": 2,
}  # fmt: skip
CHANGED = ("pay", "nap", "parcel", "turn", "heavy")
CANCELLED = {"slow": 0.6, "slow_plain": 0.6, "strict": 0.15, "both": 0.15}  # how many of them
PLAIN_KINDS = {"pay": 6, "read": 6, "keyed": 4, "bulk": 1, "borrowed": 4, "turn": 3, "metered": 2, "heavy": 3}
RESULT_S = 10.0


class Client:
    """One process. `numbers` are the arguments of its jobs, each given away once."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._record = Record(post.folder / f"{post.name}.client")
        self.work = self._work = Work(post.url, Config(**CLIENT_SETTINGS), outside=post.store)
        self._chance = random.Random(f"{post.seed} {post.name}")
        self._numbers = itertools.count(post.number * NUMBERS_EACH)
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    async def run(self) -> None:
        """Submit as many as the board allows, until told to stop."""
        self._work.app.client.patience_s = 1.0
        plain = threading.Thread(target=self._serve_plainly, name="plain", daemon=True)
        plain.start()
        await asyncio.gather(*(self._serve() for _ in range(TURNS)))
        await asyncio.to_thread(plain.join)
        await self._work.app.aclose()

    def stop(self) -> None:
        self._stopping.set()

    async def _serve(self) -> None:
        while not self._stopping.is_set():
            if not self._post.board.take(self._post.slot):
                await asyncio.sleep(0.02)
                continue
            await self._one()

    async def _one(self) -> None:
        kind = self._drawn(self._post.mix or ASYNC_KINDS)
        if kind == "bulk":
            numbers = self._take_more()
            calls = [(self._work.turn if n % 2 else self._work.look).call(n) for n in numbers]
            await self._told(
                "bulk", lambda: self._work.app.asubmit_many(calls), _ids, kind="look", numbers=numbers
            )
        elif kind == "keyed":
            key, number = self._key()
            keyed = self._work.pay.using(key=key)
            await self._told(
                "submit", lambda: keyed.asubmit(number), _id, kind="pay", numbers=[number], key=key
            )
        elif kind == "paused":
            await self._pause()
        else:
            number = next(self._numbers)
            job, arguments = getattr(self._work, kind), arguments_of(kind, number)
            handle = await self._told(
                "submit", lambda: job.asubmit(*arguments), _id, kind=kind, numbers=[number]
            )
            if handle is not None:
                await self._afterwards(kind, handle, number)

    async def _pause(self) -> None:
        """A queue stands still for a moment: if this process is killed meanwhile, until another one has paused it."""
        client = self._work.app.client
        await self._told("pause", lambda: client.apause_queue(PAUSED), _nothing)
        await asyncio.sleep(self._chance.random() / 2)
        await self._told("resume", lambda: client.aresume_queue(PAUSED), _nothing)

    async def _afterwards(self, kind: str, handle: Handle[Any], number: int) -> None:
        if self._chance.random() < CANCELLED.get(kind, 0.0):
            await asyncio.sleep(self._chance.random())
            await self._told("cancel", lambda: handle.acancel(), _answer, job=handle.id)
        elif kind == "doomed":
            for _ in range(3):
                if await self._result(handle) != "failed":
                    return
                await self._told("revive", lambda: handle.arevive(), _nothing, job=handle.id)
        elif kind in CHANGED and self._chance.random() < 0.5:
            # Once for each job, and at once: most of them are claimed at about the same time.
            priority = self._chance.randint(1, 5)
            delay_s = self._chance.choice([None, 0.0, 0.3])
            args = {"n": number, "load": f"{loaded(number)}!"} if kind in HEAVY else None
            await self._told(
                "change",
                # In a thread: arguments are put into the store outside.
                lambda: (
                    asyncio.to_thread(handle.change, priority=priority, delay_s=delay_s, args=args)
                    if args
                    else handle.achange(priority=priority, delay_s=delay_s)
                ),
                _nothing,
                job=handle.id,
                priority=priority,
            )
        elif self._chance.random() < 0.1:
            await self._result(handle)

    async def _result(self, handle: Handle[Any]) -> str:
        """Wait for the end; how it ended, or nothing."""
        op = self._record.ask("result", job=handle.id)
        try:
            value = await handle.aresult(RESULT_S)
        except (JobFailed, JobCancelled) as error:
            ended = "failed" if isinstance(error, JobFailed) else "cancelled"
        except ResultTimeout:
            self._record.write("no", op=op, code="timeout")
            return ""
        except Exception as error:
            self._refused(op, error)
            return ""
        else:
            self._record.write("ok", op=op, ended="succeeded", value=number_in(value))
            return "succeeded"
        self._record.write("ok", op=op, ended=ended)
        return ended

    async def _told(
        self, verb: str, act: Callable[[], Awaitable[T]], show: Callable[[T], Any], **facts: Any
    ) -> T | None:
        op = self._record.ask(verb, **facts)
        try:
            answer = await act()
        except Exception as error:
            self._refused(op, error)
            return None
        self._record.write("ok", op=op, answer=show(answer))
        return answer

    # --- the plain methods ---------------------------------------------------------------------------

    def _serve_plainly(self) -> None:
        while not self._stopping.is_set():
            if not self._post.board.take(self._post.slot):
                self._stopping.wait(0.02)
                continue
            self._one_plainly()

    def _one_plainly(self) -> None:
        kind = self._drawn(self._post.mix or PLAIN_KINDS)
        if kind == "bulk":
            numbers = self._take_more()
            calls = [self._work.pay_plain.call(n) for n in numbers]
            self._told_plainly(
                "bulk", lambda: self._work.app.submit_many(calls), _ids, kind="pay_plain", numbers=numbers
            )
        elif kind == "keyed":
            key, number = self._key()
            keyed = self._work.pay.using(key=key)
            self._told_plainly(
                "submit", lambda: keyed.submit(number), _id, kind="pay", numbers=[number], key=key
            )
        elif kind == "borrowed":
            self._submit_borrowed(next(self._numbers))
        else:
            number = next(self._numbers)
            job, arguments = getattr(self._work, kind), arguments_of(kind, number)
            self._told_plainly("submit", lambda: job.submit(*arguments), _id, kind=kind, numbers=[number])

    def _told_plainly(self, verb: str, act: Callable[[], T], show: Callable[[T], Any], **facts: Any) -> None:
        op = self._record.ask(verb, **facts)
        try:
            answer = act()
        except Exception as error:
            self._refused(op, error)
            return
        self._record.write("ok", op=op, answer=show(answer))

    def _submit_borrowed(self, number: int) -> None:
        """In a transaction of our own, of which every fourth is rolled back."""
        op = self._record.ask("submit", kind="look", numbers=[number])
        committing = False
        try:
            with self._own_connection() as connection:
                handle = self._work.look.using(connection=connection).submit(number)
                if number % 4 == 0:
                    connection.rollback()
                    self._record.write("no", op=op, code="rolled back")
                    return
                committing = True
                connection.commit()
        except (FencerowError, psycopg.Error, sqlite3.Error) as error:
            # Only the commit is in doubt: what came before it was never stored.
            phase = "unknown" if committing else "no"
            self._record.write(phase, op=op, code=type(error).__name__, error=str(error)[:200])
            return
        self._record.write("ok", op=op, answer=[handle.id])

    @contextlib.contextmanager
    def _own_connection(self) -> Iterator[Any]:
        if self._post.url.startswith("postgresql:"):
            opened: Any = psycopg.connect(self._post.url, connect_timeout=2)
        else:
            opened = sqlite3.connect(
                self._post.url.removeprefix("sqlite:///"), timeout=2, isolation_level=None
            )
            opened.execute("BEGIN IMMEDIATE")
        try:
            yield opened
        finally:
            opened.close()

    # --- what they share -----------------------------------------------------------------------------

    def _drawn(self, kinds: Mapping[str, int]) -> str:
        with self._lock:
            return self._chance.choices(list(kinds), list(kinds.values()))[0]

    def _take_more(self) -> list[int]:
        """Numbers for a bulk: one was taken from the board already."""
        count = 10 + self._chance.randrange(40)
        for _ in range(count - 1):
            self._post.board.take(self._post.slot, beyond=True)
        return [next(self._numbers) for _ in range(count)]

    def _key(self) -> tuple[str, int]:
        """A key that the other clients use at about the same time, and the number that belongs to it, mostly."""
        turn = self._post.board.taken() // 12
        strange = self._chance.random() < 0.05
        return f"key {turn}", (STRANGE_FROM if strange else KEYS_FROM) + turn

    def _refused(self, op: int, error: Exception) -> None:
        """Write down what the error tells a caller; one that is not ours tells nothing, and is found later."""
        if not isinstance(error, FencerowError):
            self._record.write("wrong", op=op, error=f"{type(error).__name__}: {error}"[:600])
            return
        # What may be repeated was not done. An error that says neither yes nor ask is no answer to a submit.
        phase = {"yes": "no", "ask": "unknown"}.get(error.repeat, "refused")
        self._record.write(
            phase,
            op=op,
            code=type(error).__name__,
            ids=list(getattr(error, "job_ids", ())),
            state=str(getattr(error, "state", "")),
            error=str(error)[:300],
        )


def _id(handle: Handle[Any]) -> list[str]:
    return [handle.id]


def _ids(handles: Sequence[Handle[Any]]) -> list[str]:
    return [handle.id for handle in handles]


def _answer(answer: Any) -> str:
    return str(answer)


def _nothing(_: object) -> None:
    return None
