"""What people are shown of sealed and signed payloads: by the doctor, by `why` and by `jobs show`."""

from __future__ import annotations

from fencerow import App
from fencerow.config import Config
from fencerow.core.finding import Finding, Level
from fencerow.payloads.checks import examine_payloads
from fencerow.testing import drain
from tests.payloads.conftest import ROTATED, SEALS, of, stored, write

CONFIG = Config(url="sqlite:///other.db")  # the checks look at the engine


def note(text: str) -> None: ...


def findings(app: App) -> dict[str, Finding]:
    return {each.name: each for each in examine_payloads(app.engine, CONFIG)}


def test_the_doctor_says_nothing_where_nothing_is_sealed(url: str) -> None:
    with App(url) as app:
        app.job(note).submit("plain")
        assert findings(app) == {}


def test_the_doctor_counts_live_jobs_by_key_and_names_an_altered_one(url: str, how: str) -> None:
    with (
        App(url) as before,
        App(url, seal=SEALS[how]()) as app,
        App(url, seal=ROTATED[how]("k2", "k1")) as newer,
    ):
        _, _, handle = [each.job(note).submit("text") for each in (before, app, newer)]
        assert findings(app)["keys of payloads"].found == (
            "live jobs by the key of their arguments: 1 under none, 1 under k1, 1 under k2"
            if app.engine.dialect == "sqlite"
            else "live jobs by the key of their arguments: 1 under k1, 1 under k2, 1 under none"
        )
        text: str = stored(app, handle.id)["args"]
        write(app, handle.id, "args", text.replace(of(text)["mark"], "0" * 64))
        drain(newer)
        found = findings(newer)["altered payloads"]
    assert found.level is Level.WARN and found.found.startswith("2 jobs failed within 7 days")
