"""All routes of jobs, in the order in which the OpenAPI document tells them."""

from __future__ import annotations

from fencerow.web.gateway.looking import ROUTES as LOOKING
from fencerow.web.gateway.moving import ROUTES as MOVING
from fencerow.web.gateway.submitting import ROUTES as SUBMITTING

ROUTES = (*SUBMITTING, *LOOKING, *MOVING)
