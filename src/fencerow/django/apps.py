"""What Django loads of us: name it in INSTALLED_APPS as `fencerow.django`."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class FencerowConfig(AppConfig):
    """Our tables come with `manage.py migrate`, and what is set wrong is said by `manage.py check`."""

    name = "fencerow.django"
    label = "fencerow"
    verbose_name = "Fencerow"

    def ready(self) -> None:
        """Called by Django once all apps and models are loaded."""
        from fencerow.django import checking, tables

        checks.register(checking.check_settings, checks.Tags.compatibility)
        checks.register(checking.check_tables, checks.Tags.database)
        post_migrate.connect(tables.after_migrate, sender=self, dispatch_uid="fencerow")
