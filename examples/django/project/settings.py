"""The settings of the shop: on a SQLite file, or on PostgreSQL where PGDATABASE names a database."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("SHOP_FOLDER", BASE_DIR))
MAILS = FOLDER / "mails.txt"
SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only for trying it out")
DEBUG = "SHOP_SECRET_KEY" not in os.environ
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "fencerow.django",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
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
]
ROOT_URLCONF = "project.urls"
STATIC_URL = "/static/"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if "PGDATABASE" in os.environ:
    DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": FOLDER / "shop.sqlite3",
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30},
            "TEST": {"NAME": FOLDER / "test.sqlite3"},
        }
    }

TASKS = {
    "default": {
        "BACKEND": "fencerow.django.backend.FencerowBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"attempts_max": 5, "timeout_s": 60},
    }
}
FENCEROW = {"DASHBOARD": "/fencerow/"}
