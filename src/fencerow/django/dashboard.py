"""The dashboard inside a Django project that is served over ASGI, behind Django's own login.

    # asgi.py
    from fencerow.django.dashboard import with_dashboard
    application = with_dashboard(get_asgi_application())

Who is logged in as staff and may `view_job` looks, who may `change_job` acts, a superuser may all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import SimpleCookie
from importlib import import_module
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from fencerow.django.errors import InvalidDjangoSettings
from fencerow.django.settings import read_settings
from fencerow.errors import MissingExtra

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[Any]]
VISITOR = "fencerow.visitor"


def with_dashboard(
    application: Application, *, at: str | None = None, read_only: bool = False
) -> Application:
    """The application with the dashboard under `at`, by default FENCEROW["DASHBOARD"] or /fencerow/.

    `read_only`: nobody may do more than look. Whoever is not logged in is led to the login.

    Raises:
        MissingExtra: the extra `web` is not installed. InvalidDjangoSettings: `at` is no path.
    """
    place = (at or read_settings().dashboard or "/fencerow/").rstrip("/")
    if not place.startswith("/"):
        raise InvalidDjangoSettings(
            f"the dashboard cannot be at {at!r}", "a path of its own is expected", "write /fencerow/"
        )
    board = _board(read_only=read_only)

    async def answer(scope: Scope, receive: Any, send: Any) -> Any:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == place or path.startswith(f"{place}/")):
            return await application(scope, receive, send)
        if path == place:
            return await _redirect(send, f"{place}/")
        visitor = await sync_to_async(_visitor)(scope)
        if visitor is None:
            return await _redirect(send, f"{_login_url()}?next={quote(path)}")
        root = scope.get("root_path", "")
        return await board({**scope, "root_path": f"{root}{place}", VISITOR: visitor}, receive, send)

    return answer


def _board(*, read_only: bool) -> Application:
    try:
        from fencerow.web.dashboard.asgi import Dashboard
    except ImportError as error:
        raise MissingExtra(
            "the dashboard needs a library that is not installed", str(error), 'pip install "fencerow[web]"'
        ) from error
    from fencerow.django.project import load_jobs

    async def authorize(request: Any) -> Any:
        return request.scope[VISITOR]

    return Dashboard(load_jobs(), authorize=authorize, read_only=read_only)


def _visitor(scope: Scope) -> Any:
    """Who asks, by the session of Django; None: nobody who is logged in."""
    from fencerow.web.dashboard.roles import Role, Visitor

    close_old_connections()
    try:
        request: Any = HttpRequest()
        store: Any = import_module(settings.SESSION_ENGINE).SessionStore
        request.session = store(_cookie(scope, settings.SESSION_COOKIE_NAME))
        user: Any = get_user(request)
        if not user.is_authenticated:
            return None
        role = Role.NONE
        if user.is_active and user.is_staff:
            for permission, found in (("view_job", Role.READ), ("change_job", Role.ACT)):
                role = found if user.has_perm(f"fencerow.{permission}") else role
            role = Role.ADMIN if user.is_superuser else role
        return Visitor(user.get_username(), role)
    finally:
        close_old_connections()


def _cookie(scope: Scope, name: str) -> str | None:
    found = SimpleCookie()
    for header, value in scope.get("headers", ()):
        if header == b"cookie":
            found.load(value.decode("latin-1"))
    return found[name].value if name in found else None


def _login_url() -> str:
    try:
        return str(reverse("admin:login"))
    except NoReverseMatch:
        return str(settings.LOGIN_URL)


async def _redirect(send: Any, place: str) -> None:
    headers = [(b"location", place.encode("ascii", "ignore")), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 302, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
