"""`Job`: what permissions and the admin's index know jobs by. It has no table, and nothing is read by it."""

from __future__ import annotations

from typing import Any

from django.db import models


class NothingManager(models.Manager):
    """Jobs are read by Fencerow's own statements, so `dumpdata` and the like find none here."""

    def get_queryset(self) -> Any:
        """No rows, and no statement."""
        return super().get_queryset().none()


class Job(models.Model):
    """A job of Fencerow, in the admin."""

    id = models.UUIDField(primary_key=True)

    objects = NothingManager()

    class Meta:
        managed = False
        db_table = "fencerow_jobs_in_the_admin"
        default_permissions = ("view", "change")
        verbose_name = "job"
        verbose_name_plural = "jobs"
