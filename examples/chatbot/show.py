"""The show: what the chatbot does when things go well, and when they do not, told with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from examples.chatbot import broadcast, inbound, knowledge, receiver, shards
from examples.chatbot.base import OUTSIDE, SHARDS, app, connected, execute
from examples.chatbot.outside import NOBODY
from examples.chatbot.web import get, post
from examples.stage import WAIT_S, Worker, must, played, say, title, wait, worker
from fencerow import Handle, State

SOURCES = Path(__file__).parent / "sources"
FILES = ("faq.md", "opening_hours.txt", "repairs.md", "rental_terms.pdf")
WORKSPACES = ("harbour", "airport", "market", "museum", "park")  # each shard has one or two
QUESTIONS = (
    "May I ride on the beach?",
    "My bicycle was stolen, what now?",
    "is there a parking garage",
    "What is the capital of France?",
)
TIMES_EACH = 3  # how often the channel brings the same event
SENDING = 4  # batches that one worker sends at a time
SERVICE = "examples.chatbot.service:app"
QUEUES = "knowledge:2,broadcasts:4,inbound:2"


class Show:
    """Five scenes on one set of databases. A number that is not what it should be ends it with exit code 1."""

    def __init__(self, folder: Path, *, recipients: int) -> None:
        self._folder = folder
        self._recipients = recipients

    def run(self) -> int:
        return played(self._scenes, lambda: app.engine.close())

    # --- scenes ------------------------------------------------------------------------------------

    def _scenes(self) -> None:
        self._databases()
        with receiver.listening() as webhook:
            with self._worker("first") as first:
                self._knowledge()
                self._versions()
                self._inbound(webhook)
                self._broadcast_until_killed(first.kill)
            with self._worker("second"):
                self._broadcast_resumed()
        self._messages()

    def _databases(self) -> None:
        app.migrate()
        app.declare_limits()
        title(f"{1 + len(SHARDS)} databases get their steps")
        for line in shards.migrate():
            say(line)
        must(shards.migrate() == [], "a second run did something")
        say("a second run finds nothing to do")

    def _knowledge(self) -> None:
        title(f"{len(FILES)} files are read, cut, embedded and replaced")
        before = counts()
        for handle in [self._index(name, SOURCES / name, 1) for name in FILES]:
            indexed = handle.result(timeout_s=WAIT_S)
            say(f"{indexed.source}: {indexed.outcome}, {indexed.chunks} chunks")
        calls = since(before)["embed_calls"]
        again = Counter(
            self._index(name, SOURCES / name, 2).result(timeout_s=WAIT_S).outcome for name in FILES
        )
        more = since(before)["embed_calls"] - calls
        must(calls == len(FILES) and more == 0, f"the provider was called {calls} and then {more} times")
        must(again == {"unchanged": len(FILES)}, f"the second time: {again}")
        say(f"provider calls: {calls}; for the same files again: {more}, and nothing written")

    def _versions(self) -> None:
        title("An older version that ends after a newer one does not win")
        change(embeds_held=1)
        before = counts()
        older = self._index("faq.md", self._edited("costs 4 euros", "costs 5 euros"), 3)
        wait(lambda: since(before)["embed_calls"] == 1, "the older version's call")
        newer = self._index("faq.md", self._edited("costs 4 euros", "costs 6 euros"), 4)
        won = newer.result(timeout_s=WAIT_S)
        change(embeds_held=0)
        lost = older.result(timeout_s=WAIT_S)
        found = knowledge.search("harbour", "What does a child seat cost?")
        must(won.outcome == "replaced" and lost.outcome == "outdated", f"{won.outcome}, {lost.outcome}")
        must(found is not None and "6 euros" in found.text, "the newer version is not there")
        say(f"version 4: {won.outcome}; then version 3: {lost.outcome}; a child seat costs 6 euros")

    def _inbound(self, webhook: str) -> None:
        title("Events come in several times, and each is answered once")
        before = counts()
        events = [
            {"id": f"ev-{number}", "workspace": "harbour", "sender": f"+49{number}", "text": text}
            for number, text in enumerate(QUESTIONS)
        ]
        renamed = [{**event, "id": f"{event['id']}-again"} for event in events]
        answers = post(f"{OUTSIDE}/say", {"url": webhook, "events": [*events, *renamed], "times": TIMES_EACH})
        must(set(answers["answers"]) == {200}, f"the webhook answered {answers}")
        wait(lambda: since(before)["delivered"] >= len(events), "the answers")
        self._until_idle()
        given = {each["to"]: each["text"] for each in get(f"{OUTSIDE}/deliveries").values()}
        for event in events:
            say(f"{event['text']}  →  {given[event['sender']][:78]}")
        must(given[events[-1]["sender"]] == inbound.UNKNOWN, "it answered what it cannot know")
        sent = since(before)["delivered"]
        must(sent == len(events), f"{sent} answers to {len(events)} questions")
        say(f"{len(answers['answers'])} events brought, {len(events)} of them new, {sent} answers sent")

    def _broadcast_until_killed(self, kill: Callable[[], None]) -> None:
        title(f"A broadcast to {self._recipients} recipients, and kill -9 in the middle")
        self._before = counts()
        middle = self._recipients * 2 // 5
        change(unanswered_after=self._before["delivered"] + middle)
        batches = sum(self._start(workspace) for workspace in WORKSPACES)
        wait(lambda: since(self._before)["delivered"] == middle + SENDING, "the middle of the broadcast")
        kill()
        say(f"{batches} jobs of at most {broadcast.BATCH_MAX}; the worker is killed: {self._standing()}")
        say(f"{SENDING} messages had been delivered, and the worker did not live to note it")
        change(unanswered_after=None, failing=2)

    def _broadcast_resumed(self) -> None:
        self._until_idle()
        now, standing = since(self._before), self._standing()
        total, failed = sum(standing.values()), standing["failed"]
        must(total == self._recipients and set(standing) == {"sent", "failed"}, f"the ledger says {standing}")
        must(now["delivered"] == now["addresses"] == standing["sent"], f"{now} for {standing}")
        # More only if a stalled machine let the lease of a recipient run out; never as many as were done already.
        must(SENDING <= now["repeated"] <= 2 * SENDING, f"{now['repeated']} requests were repeated")
        say(f"a new worker goes on where the ledger says: {standing}")
        say(
            f"the channel counts {now['delivered']} deliveries to {now['addresses']} addresses: "
            "nobody left out, nobody sent to twice"
        )
        say(
            f"it was asked {now['requests']} times: {now['repeated']} were repeated under the same key, "
            f"2 met a channel that was down, {failed} addresses do not exist"
        )

    def _messages(self) -> None:
        title("Messages lie where their workspace says")
        kept = 0
        for number, url in enumerate(SHARDS):
            with connected(url) as db:
                rows = execute(db, "SELECT workspace, count(*) FROM messages GROUP BY workspace ORDER BY 1")
            kept += sum(count for _, count in rows)
            say(f"messages_{number}: {', '.join(f'{name} {count}' for name, count in rows) or 'none'}")
        wanted = counts()["delivered"] + len(QUESTIONS)
        must(kept == wanted, f"{kept} messages are kept, {wanted} were sent and received")

    # --- what the scenes are made of -------------------------------------------------------------------

    def _worker(self, name: str) -> AbstractContextManager[Worker]:
        return worker(SERVICE, QUEUES, name, self._folder)

    def _index(self, name: str, path: Path, version: int) -> Handle[knowledge.Indexed]:
        return knowledge.index.submit("harbour", name, str(path), version)

    def _edited(self, old: str, new: str) -> Path:
        """A copy of the questions with other words in it."""
        text = (SOURCES / "faq.md").read_text("utf-8")
        path = self._folder / f"{new.replace(' ', '-')}.md"
        path.write_text(text.replace(old, new), "utf-8")
        return path

    def _start(self, workspace: str) -> int:
        """Begin a workspace's share of the broadcast; some of its addresses do not exist."""
        mine = range(WORKSPACES.index(workspace), self._recipients, len(WORKSPACES))
        addresses = [f"{NOBODY if number % 75 == 7 else '+49'}{workspace}{number}" for number in mine]
        return broadcast.start(f"spring/{workspace}", workspace, "Spring is here: two for one.", addresses)

    def _standing(self) -> dict[str, int]:
        standing: Counter[str] = Counter()
        for workspace in WORKSPACES:
            standing.update(broadcast.counts(f"spring/{workspace}"))
        return dict(standing)

    def _until_idle(self) -> None:
        unfinished = (State.WAITING, State.QUEUED, State.RUNNING)
        wait(lambda: not app.client.list_jobs(states=unfinished, limit=1), "the end of all jobs")


def counts() -> dict[str, int]:
    """What the world outside has counted."""
    counted: dict[str, int] = get(f"{OUTSIDE}/counts")
    return counted


def since(before: dict[str, int]) -> dict[str, int]:
    """What it has counted since then."""
    return {name: count - before[name] for name, count in counts().items()}


def change(**settings: Any) -> None:
    """Change the world outside."""
    post(f"{OUTSIDE}/change", settings)
