"""The one app of a Django project, and the modules that declare its jobs and tasks."""

from __future__ import annotations

import threading

from django.utils.module_loading import autodiscover_modules, import_string

from fencerow.app import App
from fencerow.django.errors import InvalidDjangoSettings
from fencerow.django.following import DjangoApp
from fencerow.django.settings import read_settings

_making = threading.RLock()
_made: App | None = None


def project_app() -> App:
    """The app that FENCEROW["APP"] names, else the one that is made here at the first call.

    Raises:
        InvalidDjangoSettings: what is named is not there, or is no App.
    """
    global _made
    named = read_settings().app
    if named is not None:
        return _named(named)
    with _making:
        if _made is None:
            _made = DjangoApp()
        return _made


def load_jobs() -> App:
    """The app with all that the project declares: `tasks` and `jobs` of every installed app are imported."""
    told = read_settings()
    app = project_app()
    autodiscover_modules(*told.modules)
    return app


def _named(name: str) -> App:
    try:
        found = import_string(name)
    except ImportError as error:
        raise InvalidDjangoSettings(
            f"FENCEROW['APP'] is {name!r}", str(error), "write it as module.attribute, such as shop.jobs.app"
        ) from error
    if not isinstance(found, App):
        raise InvalidDjangoSettings(
            f"FENCEROW['APP'] is {name!r}",
            f"that is a {type(found).__name__}",
            "name an App, or leave it out",
        )
    return found
