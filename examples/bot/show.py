"""The show: posts in three channels, while workers and the process that replies are killed. No part of the bot."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from examples.bot.outside import StandIn
from examples.stage import ROOT, must, played, say, title, wait
from fencerow import App
from fencerow.testing.ports import free_port

BOT = "examples.bot.bot"
FENCEROW = ("-m", "fencerow.cli.main")
SAME_S = 5.0
CHANNELS, POSTS, KILLS = ("1", "2", "3"), 8, 3
FILES = {
    "storks.txt": "Storks stand on one leg. Storks eat frogs. Nobody knows why storks stand.",
    "frogs.txt": "Frogs live in ponds. Frogs fear storks.",
}


class Show:
    """Three scenes. A reply that is missing, wrong or out of order ends it with exit code 1."""

    def __init__(self, folder: Path, discord: StandIn) -> None:
        self._folder = folder
        self._discord = discord
        self._endpoint = f"http://127.0.0.1:{free_port()}/discord/interactions"
        self._asked: dict[str, list[str]] = {channel: [] for channel in CHANNELS}
        discord.files |= FILES

    def run(self) -> int:
        return played(self._scenes, lambda: None)

    def _scenes(self) -> None:
        with App() as app:
            app.check_or_create()
        with ExitStack() as running:
            port = self._endpoint.rpartition(":")[2].partition("/")[0]
            serve = (*FENCEROW, "serve", "-A", f"{BOT}:app", "--discord", f"{BOT}:discord", "--bind", port)
            running.enter_context(self._process("serve", *serve, until="serving on"))
            self._posts()
            self._killed()
            self._ended()

    def _posts(self) -> None:
        title("Posts in three channels, before anybody works")
        for number in range(POSTS):
            for channel in CHANNELS:
                files = ("storks.txt", "frogs.txt", "lost.txt")[: number % 4]
                token, told = self._discord.ask(
                    self._endpoint, f"Question {number} about storks.", channel, files=files
                )
                must(told == {"type": 5}, f"post {number} was answered {told}")
                self._asked[channel].append(token)
        say(f"{POSTS * len(CHANNELS)} posts, each deferred once its job was stored")
        began = time.monotonic()
        self._asked["3"].append(self._discord.ask(self._endpoint, "Twice?", "3")[0])
        _, told = self._discord.ask(self._endpoint, "Twice?", "3")
        is_late = time.monotonic() - began > SAME_S  # on a machine that is very slow
        must(told["type"] == 4 or is_late, "the same post again became another job")
        say("the same post again: no other job")

    def _killed(self) -> None:
        title("Workers and the process that replies are killed with -9")
        for number in range(KILLS):
            before = len(self._discord.replies)
            with self._worker(number), self._deliverer(number):
                wait(partial(self._has_more_than, before), "a reply")
            say(f"killed after {len(self._discord.replies)} replies")

    def _has_more_than(self, replies: int) -> bool:
        return len(self._discord.replies) > replies

    def _ended(self) -> None:
        title("And then they stay")
        everything = {token for tokens in self._asked.values() for token in tokens}
        with self._worker(KILLS), self._deliverer(KILLS):
            while not {token for token, _ in self._discord.replies} >= everything:
                wait(partial(self._has_more_than, len(self._discord.replies)), "another reply")
        for channel, tokens in self._asked.items():
            seen = list(dict.fromkeys(token for token, _ in self._discord.replies if token in tokens))
            must(seen == tokens, f"the replies of channel {channel} came in another order")
        must(all(len(set(self._discord.texts(each))) == 1 for each in everything), "two replies differ")
        doubled = len(self._discord.replies) - len(everything)
        say(
            f"{len(everything)} replies, in the order of each channel; {doubled} edits were sent twice, alike"
        )
        say(self._discord.texts(self._asked["1"][3])[-1].replace("\n", " "))

    def _worker(self, number: int) -> AbstractContextManager[None]:
        return self._process(f"worker-{number}", *FENCEROW, "worker", "-A", f"{BOT}:app")

    def _deliverer(self, number: int) -> AbstractContextManager[None]:
        return self._process(f"deliver-{number}", "-m", "examples.bot", "deliver")

    @contextmanager
    def _process(self, name: str, *command: str, until: str = "") -> Iterator[None]:
        """A program of its own, killed at the end of the block as kill -9 does."""
        log = self._folder / f"{name}.log"
        with (
            log.open("wb") as out,
            subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=out, stderr=out) as process,
        ):
            try:
                wait(lambda: until in log.read_text(), name)
                yield
            finally:
                process.kill()
