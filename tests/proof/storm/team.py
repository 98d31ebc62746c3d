"""The processes of a storm: forked from one that has everything loaded, struck down, and counted at the end."""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from fencerow.core.worker.blocked import EXIT_CODE
from fencerow.errors import LoopBlocked
from tests.kit.forking import context
from tests.proof.storm import member
from tests.proof.storm.plan import LIMIT_S, Plan
from tests.proof.storm.post import Board, Post

GONE_S = 10.0
# The fork server tells an end once. When another thread starts a process it looks at all, and may have taken the news.
KILLED = (-signal.SIGKILL, 255)


@dataclass(eq=False)
class Member:
    """One process and what is known of it."""

    post: Post
    process: BaseProcess
    control: Connection
    is_worker: bool
    spared: bool  # the one that is neither killed nor stopped: to it the bound on recovery is owed
    struck: bool = False  # a fault has it in hand
    stood_until: float = -math.inf  # the end of its last stop, on the monotonic clock
    condemned: bool = False  # a fault has ordered its death, and could not wait for it
    ordering: threading.Lock = field(default_factory=threading.Lock)  # one order at a time, and its answer

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def has_begun(self) -> bool:
        """Whether it has come to its work: a worker to a job, a client to a question. Before that it holds nothing."""
        begun = self.post.folder / f"{self.post.name}.{'sink' if self.is_worker else 'client'}"
        return begun.exists() and begun.stat().st_size > 0

    def is_rested(self) -> bool:
        """Whether no job with a time limit can be under way that has stood still already.

        One stop is shorter than the limit. Two of them are not, and would end a job that does nothing wrong.
        """
        return time.monotonic() - self.stood_until > LIMIT_S


class Team:
    """Workers and clients on one database. Whoever is killed is replaced at once, under a new name."""

    def __init__(self, folder: Path, url: Callable[..., str], plan: Plan) -> None:
        self._context = context
        self.folder = folder
        self.board = Board(self._context.RawArray("q", 1 + plan.clients))
        self._first = Post("", 0, 0, "", folder, plan.seed, plan.bug, plan.mix, self.board)
        self._url = url
        self._lock = threading.Lock()
        self._number = 0
        self.members: list[Member] = []
        self.died: list[str] = []  # by themselves: that is never right
        self.spared_pids: set[int] = set()
        self.ended_blocked = 0  # by themselves, since a handler blocked their event loop: that is right

    def start(self, *, is_worker: bool, slot: int = 0, spared: bool = False) -> Member:
        with self._lock:
            self._number += 1
            url = self._url(is_worker=is_worker, spared=spared)
            name = f"{'worker' if is_worker else 'client'}-{self._number}"
            post = replace(self._first, name=name, number=self._number, slot=slot, url=url, spared=spared)
            ours, theirs = self._context.Pipe()
            target = member.serve if is_worker else member.call
            process = self._context.Process(target=target, args=(post, theirs), name=name, daemon=True)
            process.start()
            theirs.close()
            made = Member(post, process, ours, is_worker, spared)
            self.members.append(made)
            if spared:
                self.spared_pids.add(made.pid)
            return made

    def set_clock(self, offset_us: int) -> list[Member]:
        """From now on new processes start with their clock so far off; returns those that have to be told."""
        with self._lock:
            self._first = replace(self._first, clock_us=offset_us)
            return list(self.members)

    @contextmanager
    def one(
        self,
        chance: random.Random,
        *,
        is_worker: bool,
        fit: Callable[[Member], bool] = lambda _member: True,
    ) -> Iterator[Member | None]:
        """A process that may be struck, for as long as the block lasts; None if there is no fit one just now."""
        with self._lock:
            able = [
                each
                for each in self.members
                if each.is_worker is is_worker
                and not (each.struck or each.spared)
                and each.process.is_alive()
                and fit(each)
            ]
            settled = [each for each in able if each.has_begun()]
            chosen = chance.choice(settled or able) if able else None
            if chosen is not None:
                chosen.struck = True
        try:
            yield chosen
        finally:
            if chosen is not None:
                chosen.struck = False

    def kill(self, victim: Member) -> bool:
        """SIGKILL, wait until it is gone, and start another; false if it ended in another way."""
        victim.process.kill()
        victim.process.join(GONE_S)
        gone = victim.process.exitcode in KILLED
        if gone:
            self._replace(victim)
        return gone

    def replace_dead(self) -> None:
        """Look for processes that ended by themselves, write them down and start others."""
        with self._lock:
            dead = [each for each in self.members if not each.struck and not each.process.is_alive()]
        for each in dead:
            self._note_end(each)
            self._replace(each)

    def end(self, *, workers: bool, within_s: float) -> list[str]:
        """Ask the workers or the clients to stop; returns what did not, and had to be killed."""
        leaving = [each for each in self.members if each.is_worker is workers]
        for each in leaving:
            if each.process.is_alive():
                os.kill(each.pid, signal.SIGTERM)
        late = []
        until = time.monotonic() + within_s
        for each in leaving:
            each.process.join(max(0.1, until - time.monotonic()))
            if each.process.is_alive():
                late.append(each.post.name)
                each.process.kill()
                each.process.join(GONE_S)
            elif each.process.exitcode not in (0, -signal.SIGTERM):  # one that had only just started
                self._note_end(each)
            self._forget(each)
        return late

    def close(self) -> None:
        """Kill what is left."""
        for each in list(self.members):
            each.process.kill()
            each.process.join(GONE_S)
            self._forget(each)

    def _note_end(self, gone: Member) -> None:
        if gone.condemned and gone.process.exitcode in KILLED:
            return
        said = self._said(gone)
        if gone.process.exitcode == EXIT_CODE and LoopBlocked.code in said:
            self.ended_blocked += 1
        else:
            self.died.append(f"{gone.post.name} ended with {gone.process.exitcode}: {said[-1500:]}")

    def _replace(self, gone: Member) -> None:
        self._forget(gone)
        self.start(is_worker=gone.is_worker, slot=gone.post.slot, spared=gone.spared)

    def _forget(self, gone: Member) -> None:
        with self._lock:
            self.members.remove(gone)
        gone.control.close()

    def _said(self, of: Member) -> str:
        path = of.post.folder / f"{of.post.name}.log"
        return path.read_text(errors="replace") if path.exists() else "(it said nothing)"
