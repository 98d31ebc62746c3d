"""What is changed over HTTP is noted under the token's name, with the request that did it."""

from __future__ import annotations

import httpx

from fencerow import App

CHANGES: tuple[tuple[str, str, dict[str, object] | None], ...] = (
    ("POST", "/v1/queues/pause", {"queue": "documents"}),
    ("POST", "/v1/queues/resume", {"queue": "documents"}),
    ("POST", "/v1/schedules/pause", {"name": "nightly"}),
    ("POST", "/v1/schedules/resume", {"name": "nightly"}),
    ("POST", "/v1/schedules/run", {"name": "nightly"}),
    ("POST", "/v1/limits/set", {"limit": "api", "at_once": 2}),
    ("POST", "/v1/shares/set", {"queue": "documents", "share": "acme", "weight": 2}),
    ("PATCH", "/v1/jobs/{id}", {"priority": 5}),
    ("DELETE", "/v1/jobs/{id}", None),
    ("POST", "/v1/jobs/{id}/revive", None),
    ("POST", "/v1/maintenance/on", {}),
    ("POST", "/v1/maintenance/off", {}),
)


async def test_each_change_is_noted_with_its_request(app: App, http: httpx.AsyncClient) -> None:
    await app.schedules.aput("nightly", app.jobs["pages"].call(path="a"), cron="0 3 * * *")
    job = (await app.asubmit_by_name("pages", {"path": "a"})).id
    since = {each.id for each in await app.client.audit.aentries()}

    made: list[tuple[str, str]] = []
    for method, path, body in CHANGES:
        answer = await http.request(method, path.replace("{id}", job), json=body)
        assert answer.status_code == 200, answer.text
        made.append((path, answer.headers["x-request-id"]))
    entries = {each.request_id: each for each in await app.client.audit.aentries() if each.id not in since}

    for path, request_id in made:
        assert request_id in entries, f"{path} was not noted"
        assert (entries[request_id].person, entries[request_id].via) == ("tests", "http"), path
