"""examples/documents, where what is asked of a document answers as a test's script says. Its jobs are the example's."""

from __future__ import annotations

import base64
import importlib
from typing import Any

import httpx

from examples.documents import customer, jobs
from tests.whole.systems.documents_reading import HEAD, boxes, counting, model

__all__ = ["app", "args", "boxes", "counting", "model", "note", "places", "posted_as"]

importlib.reload(jobs)  # an app of the environment that there is now
app = jobs.app


def args(name: str) -> dict[str, Any]:
    """What the first stage is given."""
    return {"name": name, "content": base64.b64encode(HEAD + name.encode()).decode()}


def posted_as(name: str, **options: Any) -> dict[str, Any]:
    """The two stages that a customer posts; `options` are of the first one."""
    document = customer.two_stages(name, HEAD + name.encode())
    document["jobs"][0].update(options)
    return document


def note(answer: httpx.Response) -> str:
    """What the model has said of the document, in the result of either stage."""
    return str(answer.json()["found"]["note"])


def places(answer: httpx.Response) -> list[str]:
    """What was asked for the places, if that stage has a result."""
    return [place["field"] for page in answer.json().get("places", {}).values() for place in page]
