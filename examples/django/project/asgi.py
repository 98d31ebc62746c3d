"""The shop over ASGI, with Fencerow's dashboard beside it: `uvicorn project.asgi:application`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

# It sets Django up, so it comes before whatever needs the settings.
pages = ASGIStaticFilesHandler(get_asgi_application())

from fencerow.django.dashboard import with_dashboard

application = with_dashboard(pages)
