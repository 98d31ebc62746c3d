"""Django, set up once in this process; a test gives its databases the names of its own."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

if not settings.configured:
    import django

    settings.configure(
        SECRET_KEY="of a test",
        USE_TZ=True,
        LOGGING_CONFIG=None,
        ALLOWED_HOSTS=["testserver", "127.0.0.1"],
        ROOT_URLCONF="tests.django.urls",
        STATIC_URL="/static/",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "fencerow.django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": "nobody has named it yet",
                "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            },
            "postgres": {"ENGINE": "django.db.backends.postgresql", "NAME": "nobody has named it yet"},
        },
        TASKS={
            "default": {"BACKEND": "fencerow.django.backend.FencerowBackend", "QUEUES": []},
        },
    )
    django.setup()

PARTS = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT", "password": "PASSWORD"}


def settings_of(url: str) -> dict[str, Any]:
    """A database of a test as Django's settings name it."""
    if url.startswith("sqlite"):
        return {"NAME": unquote(url.removeprefix("sqlite:///"))}
    found = conninfo_to_dict(url)
    return {name: str(found.get(part, "")) for part, name in PARTS.items()}
