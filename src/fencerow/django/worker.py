"""What `manage.py fencerow_worker` runs, and `fencerow worker -A fencerow.django.worker` too: the project's app.

Importing this module sets Django up, if nobody did, and imports the tasks and jobs of every installed app. So worker
processes and their children find the same by this name.
"""

from __future__ import annotations

import django
from django.apps import apps

from fencerow.app import App
from fencerow.errors import MissingExtra


def _whole_app() -> App:
    """The project's app with all that is declared, on the database of now."""
    if not apps.ready:
        django.setup()
    from fencerow.django.following import DjangoApp
    from fencerow.django.project import load_jobs

    found = load_jobs()
    _declare_tasks(found)
    if isinstance(found, DjangoApp):
        found.follow()
    return found


def _declare_tasks(found: App) -> None:
    try:
        from fencerow.django.declaring import declare_all
    except MissingExtra:
        return  # this Django has no tasks, and the project has jobs alone
    declare_all(found)


app = _whole_app()

__all__ = ["app"]
