"""Fencerow's tables, and the model by which Django knows who may see and change jobs."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models

from fencerow.django.tables import make_tables


class Migration(migrations.Migration):
    """There is no way down: jobs are not thrown away by a command that is about something else."""

    initial = True
    atomic = (
        False  # our migrator has connections of its own, and on SQLite a transaction here would lock it out
    )
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[Any]] = [
        migrations.RunPython(make_tables, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Job",
            fields=[("id", models.UUIDField(primary_key=True, serialize=False))],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "db_table": "fencerow_jobs_in_the_admin",
                "default_permissions": ("view", "change"),
                "managed": False,
            },
        ),
    ]
