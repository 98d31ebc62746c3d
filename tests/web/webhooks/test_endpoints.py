"""Endpoints: made once, changed by one, with secrets that nobody is shown by the way."""

from __future__ import annotations

import json

import pytest

from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.errors import EndpointConflict, EndpointNotFound
from fencerow.events.groups import groups
from fencerow.testing.clock import DatabaseClock
from fencerow.web.webhooks.endpoint import OVERLAP_S
from fencerow.web.webhooks.verbs import Webhooks
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.store.stage import rows, table
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

URL = "https://shop.example.com/hooks"


def verbs(engine: AnyEngine) -> Webhooks:
    return Webhooks(ClientBase(engine, actor="ada"))


def test_an_endpoint_is_as_it_was_said_and_its_secret_is_shown_once(engine: AnyEngine) -> None:
    hooks = verbs(engine)

    added = hooks.add(
        "shop", URL, events=["failed"], queues=["mail"], jobs=["send"], tags=["eu"], in_order="key"
    )

    found = hooks.get("shop")
    assert found == added.endpoint or found.version == added.endpoint.version == 1
    assert (found.url, found.events, found.queues, found.jobs, found.tags) == (
        URL, ("failed",), ("mail",), ("send",), ("eu",),
    )  # fmt: skip
    assert (found.state, found.timeout_s, found.in_order, found.changed_by) == ("enabled", 15.0, "key", "ada")
    assert hooks.secrets("shop") == [added.secret] and added.secret.startswith("whsec_")
    assert added.secret not in repr(added) + repr(found) + repr(hooks.known())


def test_the_group_that_reads_for_endpoints_is_made_with_the_first(engine: AnyEngine) -> None:
    verbs(engine).add("shop", URL)

    (group,) = engine.run(groups())
    assert (group.name, group.partitions) == ("fencerow-webhooks", 1)


@pytest.mark.parametrize(
    "given",
    [
        {"events": ["ended"]}, {"events": []}, {"queues": "mail"}, {"timeout_s": 0.5}, {"timeout_s": 301},
        {"attempts_max": 0}, {"in_order": "time"}, {"queues": ["a\x00b"]},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_used_is_refused_and_makes_nothing(
    engine: AnyEngine, given: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        verbs(engine).add("shop", URL, **given)  # type: ignore[arg-type]

    assert verbs(engine).known() == []


def test_a_name_is_one_endpoint_s_until_it_is_removed(engine: AnyEngine) -> None:
    hooks = verbs(engine)
    hooks.add("shop", URL)

    with pytest.raises(EndpointConflict):
        hooks.add("shop", URL)
    hooks.remove("shop")
    with pytest.raises(EndpointNotFound):
        hooks.remove("shop")
    with pytest.raises(EndpointNotFound):
        hooks.secrets("shop")
    assert rows(engine, f"SELECT secret FROM {table(engine, 'webhook_endpoints')}") == [{"secret": ""}]
    assert hooks.add("shop", URL).endpoint.state == "enabled"


def test_of_two_changes_that_read_the_same_one_is_refused(engine: AnyEngine) -> None:
    hooks = verbs(engine)
    was = hooks.add("shop", URL, queues=["mail"]).endpoint

    changed = hooks.change("shop", timeout_s=30, version=was.version)

    assert (changed.timeout_s, changed.queues, changed.version) == (30.0, ("mail",), 2)
    with pytest.raises(EndpointConflict):
        hooks.change("shop", timeout_s=40, version=was.version)
    assert hooks.change("shop", queues=None).queues is None


def test_two_secrets_live_at_once_and_no_more(engine: AnyEngine, clock: DatabaseClock) -> None:
    hooks = verbs(engine)
    first = hooks.add("shop", URL).secret

    second = hooks.rotate("shop")

    assert hooks.secrets("shop") == [second, first]
    with pytest.raises(EndpointConflict):
        hooks.rotate("shop")
    clock.advance(OVERLAP_S + 1)
    assert hooks.secrets("shop") == [second]
    third = hooks.rotate("shop")
    assert hooks.retire("shop") and not hooks.retire("shop")
    assert hooks.secrets("shop") == [third]


def test_enabling_and_disabling_say_whether_they_changed_anything(engine: AnyEngine) -> None:
    hooks = verbs(engine)
    hooks.add("shop", URL)

    assert not hooks.enable("shop")
    assert hooks.disable("shop", reason="moves") and not hooks.disable("shop")
    assert (hooks.get("shop").state, hooks.get("shop").reason) == ("disabled", "moves")
    assert hooks.enable("shop") and hooks.get("shop").reason is None
    with pytest.raises(EndpointNotFound):
        hooks.enable("shops")


@pytest.mark.usefixtures("url")
def test_the_commands_make_show_change_and_remove_an_endpoint(engine: AnyEngine, cli: Cli) -> None:
    added = cli("webhooks", "add", "shop", URL, "--event", "failed", "--queue", "mail")
    secret = added.out.strip()
    assert added.code == 0 and verbs(engine).secrets("shop") == [secret]

    listed = cli("webhooks", "list")
    shown = json.loads(cli("webhooks", "show", "shop", "--json").out)
    cli("webhooks", "change", "shop", "--queue", "any", "--timeout", "30")
    rotated = cli("webhooks", "rotate", "shop").out.strip()

    assert "failed of queue mail" in listed.out and secret not in listed.out
    assert shown["queues"] == ["mail"] and secret not in json.dumps(shown)
    changed = verbs(engine).get("shop")
    assert (changed.queues, changed.timeout_s) == (None, 30.0)
    assert cli("webhooks", "secret", "shop").out.split() == [rotated, secret]
    assert cli("webhooks", "disable", "shop", "--reason", "moves").code == 0
    assert "disabled: moves" in cli("webhooks").out
    assert cli("webhooks", "enable", "shop").code == cli("webhooks", "remove", "shop").code == 0
    assert cli("webhooks", "show", "shop").code == 1
    assert cli("webhooks", "add", "shop", "http://127.0.0.1/").code == 2
