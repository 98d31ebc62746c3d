"""`DjangoApp`: an App whose database is one of Django's, also while Django's test runner gives that another name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencerow.app import App
from fencerow.client import Client
from fencerow.config import Config
from fencerow.db.engine import Engine
from fencerow.django.database import url_of
from fencerow.django.errors import UnusableDjangoDatabase
from fencerow.django.settings import read_settings


class DjangoApp(App):
    """An `App` on the database of `alias`, by default that of FENCEROW["DATABASE"]. All else is as in `App`.

    FENCEROW["CONFIG"] wins over FENCEROW_ variables of the environment; the database is always Django's. Nothing is
    opened before it is needed. Its own connections are of its own pools; pass `connection=django.db.connection` to
    submit in the transaction of an `atomic()` block.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(self, alias: str | None = None, **given: Any) -> None:
        told = read_settings()
        self.alias = told.database if alias is None else alias
        try:
            url = url_of(self.alias)
        except UnusableDjangoDatabase:
            # Django's own checks must be able to say so. Whoever opens it is told then.
            url = "sqlite:///fencerow-has-no-database.db"
        config = Config.load(_without_url(os.environ), url=url, **told.config)
        super().__init__(config=config, **given)
        self._followed = self.config.url

    def follow(self) -> None:
        """Use the database that Django uses now: while its tests run it has another one.

        An app that `fencerow.testing.bound` has given another database keeps that.

        Raises:
            UnusableDjangoDatabase: it cannot keep jobs.
        """
        with self._opening:
            if self.config.url != self._followed:
                return
            url = url_of(self.alias)
            if url != self._followed:
                self.close()
                self.config = replace(self.config, url=url)
                self._followed = url

    @property
    def engine(self) -> Engine:
        """See `App.engine`."""
        with self._opening:
            self.follow()
            return super().engine

    @property
    def client(self) -> Client:
        """See `App.client`."""
        with self._opening:
            self.follow()
            return super().client


def _without_url(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environ.items() if name != "FENCEROW_URL"}
