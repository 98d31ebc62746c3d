"""`fencerow webhooks in`: where other systems may post their webhooks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.web.inbound.declared import Hook, hooks_of

COLUMNS = (
    Column("hook", least=10),
    Column("path", least=16),
    Column("scheme", least=10),
    Column("job", least=10),
    Column("secrets here", least=16, folds=True, lines=3),
)


@click.command("in")
@usual_options
@click.pass_context
def in_(context: click.Context) -> None:
    """List where other systems may post their webhooks: the application's hooks, and which of their secrets are set
    here."""
    wanted = asked(context)
    app = load_app(wanted.app_name(), url=wanted.url)
    told = [document(each) for each in hooks_of(app)]
    if wanted.json:
        output.say_json(told)
        return
    rows = [
        (each["name"], each["path"], each["scheme"], each["job"], _said(each["secrets"])) for each in told
    ]
    output.table(COLUMNS, rows, none="the application takes no webhooks")


def document(hook: Hook) -> dict[str, Any]:
    """A hook without its secrets: of each only whether it is set."""
    return {
        "name": hook.name,
        "path": f"/v1/hooks/{hook.name}",
        "scheme": hook.scheme.title,
        "job": hook.job.name,
        "queue": hook.job.queue,
        "secrets": {name: bool(os.environ.get(name, "").strip()) for name in hook.scheme.names},
        "headers": list(hook.headers),
        "remembered_s": hook.remembered_s,
    }


def _said(secrets: Mapping[str, bool]) -> str:
    return ", ".join(f"{name}: {'set' if is_set else 'not set'}" for name, is_set in secrets.items())
