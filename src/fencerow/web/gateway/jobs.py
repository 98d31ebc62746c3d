"""All routes of jobs, in the order in which the OpenAPI document tells them."""

from __future__ import annotations

from fencerow.web.gateway import looking, moving, submitting

ROUTES = (*submitting.ROUTES, *looking.ROUTES, *moving.ROUTES)
