"""The scenes of the show: a customer posts documents while workers are killed, and is told of every end once.

No part of a service that you would copy: that is jobs.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.documents.customer import Customer, Refused, two_stages
from examples.stage import ROOT, Worker, must, say, title, wait
from fencerow.db.text import amount
from fencerow.demo.show import samples
from fencerow.testing.ports import free_port

APP = "examples.documents.jobs:app"
TORN = "annual_report.pdf"  # of which the second page cannot be read
SHOWN = (TORN, "contract.pdf", "receipt.pdf")
OF_WEBHOOKS = "fencerow-webhooks"
# So that a killed worker is missed in seconds; without these it takes a minute.
QUICK = {"LEASE_S": "3", "RENEW_S": "0.5", "SWEEP_S": "0.5"}


class Show:
    """One gateway, workers, a customer, and where the customer receives webhooks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._beside: list[subprocess.Popen[bytes]] = []
        self._workers: list[Worker] = []
        self._at, self._hooks = free_port(), free_port()
        os.environ.update({f"FENCEROW_{name}": value for name, value in QUICK.items()})
        os.environ["FENCEROW_WEBHOOK_ALLOW"] = f"http://127.0.0.1:{self._hooks}"
        from examples.documents.jobs import app

        app.check_or_create()
        self._app = app

    def scenes(self) -> None:
        """From the first document to the last webhook."""
        customer = self._opened()
        files = [each for each in samples() if each.name in SHOWN]
        title("Documents come in")
        first = self._worker("first", "documents")
        posted = {each.name: self._post(customer, each) for each in files}
        again = customer.submit(
            files[0].name, two_stages(files[0].name, files[0].read_bytes(), **_torn(files[0]))
        )
        must(again == posted[files[0].name], "one key is one document")
        say(f"{amount(len(posted), 'document')} posted, one of them twice: it is the same one")
        self._refused(customer)
        title("Fields come early, and their worker is killed between the stages")
        for name, address in posted.items():
            early = customer.result(address, "fields")
            must(customer.stages(address)["places"] in ("suspended", "queued"), "nobody works on places")
            say(
                f"{name}: {amount(len(early['found']['fields']), 'field')}, while the places are still to come"
            )
        first.kill()
        title("Places come late, though another worker is killed as soon as they begin")
        second = self._worker("second", f"documents,boxes,{OF_WEBHOOKS}")
        wait(lambda: self._app.client.list_jobs(name="page_places"), "a page of the second stage")
        second.kill()
        self._worker("third", f"documents,boxes,{OF_WEBHOOKS}")
        for name, address in posted.items():
            late = customer.result(address, "places")
            there = amount(sum(map(len, late["places"].values())), "place")
            missing = "".join(f"; {page} is missing: {why}" for page, why in late["missing"].items())
            say(f"{name}: {there} on {amount(len(late['places']), 'page')}{missing}")
        self._told(len(posted))

    def end(self) -> None:
        """Stop all that runs."""
        for worker in self._workers:
            worker.stop()
        for each in self._beside:
            each.kill()
            each.wait()
        self._app.close()

    def _opened(self) -> Customer:
        """A gateway, a token, and an endpoint that is told of both stages; its receiver verifies what comes."""
        from fencerow.web import Webhooks
        from fencerow.web.webhooks.settings import allowed_of

        hooks = Webhooks(self._app.client, allowed_of(self._app.config))
        there = f"http://127.0.0.1:{self._hooks}/"
        added = hooks.add("customer", there, jobs=["extract", "refine"], with_result=True)
        token = self._app.client.tokens.create("customer", scopes=["submit", "read", "cancel"]).token
        receive = [str(ROOT / "examples" / "webhooks" / "receive.py"), str(self._hooks)]
        self._start("receiver", receive, "listening", WEBHOOK_SECRETS=added.secret)
        serve = ["-m", "fencerow.cli.main", "serve", "-A", APP, "--bind", str(self._at)]
        self._start("gateway", serve, "serving on")
        return Customer(f"http://127.0.0.1:{self._at}", token)

    def _post(self, customer: Customer, file: Path) -> str:
        return customer.submit(file.name, two_stages(file.name, file.read_bytes(), **_torn(file)))

    def _refused(self, customer: Customer) -> None:
        before = len(self._app.client.list_jobs())
        try:
            customer.submit("notes", two_stages("notes.txt", b"no PDF at all"))
        except Refused as refused:
            must(
                refused.status == 422 and len(self._app.client.list_jobs()) == before,
                "nothing of it was stored",
            )
            say(f"what is no PDF is refused: {refused.status} {refused.code} at {refused.where}")
        else:
            must(False, "it was taken")
        later = two_stages("later.pdf", b"%PDF-1.7")
        later["jobs"][0]["delay_s"] = 3600
        done = customer.cancel(customer.submit("later", later))
        must(done["cancelled"] == 2, "both stages are cancelled")
        say("one that was posted for later is cancelled, with both its stages")

    def _told(self, documents: int) -> None:
        title("The customer is told")
        log = self._folder / "receiver.log"
        wait(lambda: len(_ids(log)) >= 2 * documents + 2, "the webhooks")
        ids = _ids(log)
        say(f"{amount(len(set(ids)), 'webhook')} verified: of each document both stages, and two cancels")
        must(len(set(ids)) == 2 * documents + 2, "each end is told under one id")

    def _worker(self, name: str, queues: str) -> Worker:
        made = Worker(APP, queues, name, self._folder)
        self._workers.append(made)
        return made

    def _start(self, name: str, command: Sequence[str], until: str, **more: str) -> None:
        log = self._folder / f"{name}.log"
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        with log.open("wb") as out:
            started = subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, "PYTHONPATH": paths.rstrip(os.pathsep), **more},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self._beside.append(started)
        wait(lambda: until in log.read_text(), f"the {name}")


def _torn(file: Path) -> dict[str, int]:
    return {"torn": 2} if file.name == TORN else {}


def _ids(log: Path) -> list[str]:
    """The webhooks that were believed."""
    return [line.split()[1] for line in log.read_text().splitlines() if line.startswith("received ")]
