"""An application whose job takes a mutex in a child process. Imported by the children too."""

from __future__ import annotations

from typing import Any

from fencerow import App, Config
from fencerow.guards.mutex import Mutex, mutexes

app = App()  # FENCEROW_URL


@app.job(process=True)
def alone(key: str) -> dict[str, Any]:
    with Mutex(app, key, busy="snooze", wait_s=0):
        found = app.engine.run(mutexes.look(key))
        assert found is not None
        return {"job_id": found.job_id, "job_name": found.job_name, "attempt": found.attempt}


def opened(settings: dict[str, Any]) -> App:
    """The app, on the database of the environment."""
    import importlib
    import sys

    importlib.reload(sys.modules[__name__])
    app.config = Config.load({}, url=app.config.url, **settings)
    return app
