"""Fencerow inside Django: put `fencerow.django` into INSTALLED_APPS.

`from fencerow.django import app` gives the app of this project; `fencerow.django.tasks.FencerowBackend` runs Django's
tasks. Importing this module imports nothing of Django.

The guide: docs/guide/django.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencerow.app import App
    from fencerow.django.following import DjangoApp as DjangoApp

    app: App

__all__ = ["DjangoApp", "app"]


def __getattr__(name: str) -> Any:
    if name == "app":
        from fencerow.django.project import project_app

        return project_app()
    if name == "DjangoApp":
        from fencerow.django.following import DjangoApp

        return DjangoApp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
