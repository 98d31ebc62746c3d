"""What a worker loads: the app, its jobs and its consumer."""

from examples.orders import events, jobs
from examples.orders.models import app

__all__ = ["app", "events", "jobs"]
