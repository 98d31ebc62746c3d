"""Jobs in Django's admin: who may see them, who may act, and that an action is one guarded call under their name."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client

from fencerow.django.following import DjangoApp
from fencerow.django.project import project_app
from fencerow.testing import drain
from tests.django.conftest import named
from tests.kit.databases import copy_files, scratch_folder

LIST = "/admin/fencerow/job/"


@pytest.fixture(scope="session")
def whole_file() -> Iterator[Path]:
    """A file with Django's tables and ours, made once."""
    with scratch_folder() as made:
        for _ in named("default", f"sqlite:///{made / 'whole.db'}"):
            call_command("migrate", verbosity=0)
        yield made / "whole.db"


@pytest.fixture
def app(whole_file: Path, sqlite_path: Path) -> Iterator[DjangoApp]:
    copy_files(whole_file, sqlite_path)
    for _ in named("default", f"sqlite:///{sqlite_path}"):
        found = project_app()
        assert isinstance(found, DjangoApp)

        @found.job(attempts_max=1)
        def pay(order: int, card_number: str) -> None:
            if order < 0:
                raise ValueError("no <b>such</b> order")

        yield found


def visitor(*permissions: str, staff: bool = True) -> Client:
    user = User.objects.create_user("ann", password="secret", is_staff=staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    made = Client(enforce_csrf_checks=False)
    made.force_login(user)
    return made


def messages_of(answer: Any) -> list[str]:
    found = re.findall(
        r'<li class="(?:success|error|warning)">(.+?)</li>', answer.content.decode(), re.DOTALL
    )
    return [html.unescape(each) for each in found]


def test_who_may_look_sees_jobs_without_secrets_and_no_buttons(app: DjangoApp) -> None:
    kept, failed = app.jobs["pay"].submit(1, "visa of Ada"), app.jobs["pay"].submit(-1, "visa of Ada, too")
    app.client.cancel(kept.id)
    drain(app)
    browser = visitor("view_job")

    page = browser.get(LIST).content.decode()
    assert kept.id in page and failed.id in page and "ValueError" in page
    assert "Cancel chosen" not in page
    assert kept.id not in browser.get(LIST, {"state": "failed"}).content.decode()
    one = browser.get(f"{LIST}{failed.id}/").content.decode()
    assert "no &lt;b&gt;such&lt;/b&gt; order" in one and "Traceback" in one and "Timeline" in one
    assert "visa of" not in one and "hidden" in one
    assert browser.post(f"{LIST}act/", {"action": "revive", "job": failed.id}).status_code == 403


@pytest.mark.parametrize(("permissions", "staff", "status"), [((), True, 403), (("view_job",), False, 302)])
def test_who_may_not_look_sees_nothing(
    app: DjangoApp, permissions: tuple[str, ...], staff: bool, status: int
) -> None:
    assert visitor(*permissions, staff=staff).get(LIST).status_code == status


def test_who_may_act_cancels_and_revives_under_their_name(app: DjangoApp) -> None:
    first, second = app.jobs["pay"].submit(1, "x"), app.jobs["pay"].submit(2, "y")
    browser = visitor("view_job", "change_job")

    form = {"action": "cancel", "job": [first.id, second.id], "reason": "a mistake"}
    told = messages_of(browser.post(f"{LIST}act/", form, follow=True))
    assert [app.client.get(each.id).state for each in (first, second)] == ["cancelled", "cancelled"]
    assert len(told) == 2
    again = browser.post(f"{LIST}act/", {**form, "job": [first.id]}, follow=True)
    assert "FR-303" in messages_of(again)[0]  # refused by the guard, and told
    browser.post(f"{LIST}act/", {"action": "revive", "job": first.id, "page": "job"})

    assert app.client.get(first.id).state == "queued"
    who = [(each.person, each.verb) for each in app.client.audit.entries()]
    assert ("ann", "cancelled") in who and ("ann", "revived") in who


def test_a_form_of_another_site_does_nothing(app: DjangoApp) -> None:
    job = app.jobs["pay"].submit(1, "x")
    browser = visitor("view_job", "change_job")
    browser.handler.enforce_csrf_checks = True

    assert browser.post(f"{LIST}act/", {"action": "cancel", "job": job.id}).status_code == 403
    assert app.client.get(job.id).state == "queued"


def test_what_is_not_there_is_not_found(app: DjangoApp) -> None:
    browser = visitor("view_job", "change_job")

    assert browser.get(f"{LIST}01a22840-077f-7372-ae6a-20c1e6bc8f39/").status_code == 404
    assert browser.post(f"{LIST}act/", {"action": "explode"}).status_code == 404
    assert messages_of(browser.get(LIST, {"state": "asleep"}))[0].startswith("FR-201")
