"""Jobs in Django's admin: a list, a page for each, and the guarded actions of the dashboard: cancel and revive.

Nothing here is read or written by the ORM. Who may see jobs has Django's permission `fencerow.view_job`, who may act
`fencerow.change_job`; what they do is told under their name and stands in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from fencerow.client import Client
from fencerow.core.model.job import instant
from fencerow.core.model.state import FINAL, State
from fencerow.django.models import Job
from fencerow.django.project import load_jobs
from fencerow.django.settings import read_settings
from fencerow.django.tellings import client_of, shown_job, shown_row
from fencerow.errors import FencerowError, InvalidInput, JobNotFound

PAGE = 50
FILTERS = ("state", "queue", "name", "tag")
ACTIONS: Mapping[str, tuple[Callable[[Client, str, str | None], object], str]] = {
    "cancel": (
        lambda client, job_id, reason: client.cancel(job_id, reason=reason),
        "is cancelled, or told to stop",
    ),
    "revive": (lambda client, job_id, reason: client.revive(job_id, reason=reason), "is queued again"),
}


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    """The jobs of the project, live and finished, the newest first."""

    actions: ClassVar[None] = None

    def has_add_permission(self, request: Any) -> bool:  # noqa: ARG002
        """Jobs are submitted by code."""
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:  # noqa: ARG002
        """Retention removes finished jobs."""
        return False

    def get_urls(self) -> list[Any]:
        """Django's names, with views of ours."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name="fencerow_job_changelist"),
            path("act/", view(self.act_view), name="fencerow_job_act"),
            path("<uuid:object_id>/", view(self.job_view), name="fencerow_job_change"),
        ]

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:  # noqa: ARG002
        """A page of jobs that match what was asked for."""
        self._check(request, change=False)
        chosen = {name: request.GET.get(name, "").strip() for name in FILTERS}
        found: dict[str, Any] = {"chosen": chosen, "states": [state.value for state in State], "jobs": []}
        try:
            jobs = client_of(load_jobs(), request).list_jobs(
                states=[chosen["state"]] if chosen["state"] else None,
                queue=chosen["queue"] or None,
                name=chosen["name"] or None,
                tags=[chosen["tag"]] if chosen["tag"] else (),
                before_id=request.GET.get("before") or None,
                limit=PAGE,
            )
        except FencerowError as error:
            messages.error(request, error.line)
        else:
            found["jobs"] = [shown_row(job) for job in jobs]
            found["older"] = jobs[-1].id if len(jobs) == PAGE else None
        return self._page(request, "fencerow/django/jobs.html", "Jobs", found)

    def job_view(self, request: Any, object_id: Any) -> Any:
        """All that is known of one job."""
        self._check(request, change=False)
        app = load_jobs()
        try:
            found = shown_job(app, client_of(app, request), str(object_id))
        except JobNotFound as error:
            raise Http404(error.line) from error
        job = found["job"]
        found["may_cancel"] = job.state not in FINAL
        found["may_revive"] = job.state in FINAL
        found["submitted_at"] = instant(job.submitted_at_us)
        return self._page(request, "fencerow/django/job.html", f"{job.name} {job.id}", found)

    def act_view(self, request: Any) -> Any:
        """Cancel or revive the jobs that were chosen, each by one guarded call; what was refused is told."""
        self._check(request, change=True)
        if request.method != "POST":
            raise PermissionDenied
        name = request.POST.get("action", "")
        if name not in ACTIONS:
            raise Http404(f"there is no action {name}")
        act, told = ACTIONS[name]
        client = client_of(load_jobs(), request)
        chosen = request.POST.getlist("job")
        for job_id in chosen[:PAGE]:
            try:
                act(client, job_id, request.POST.get("reason") or None)
            except (FencerowError, InvalidInput) as error:
                messages.error(request, error.line)
            else:
                messages.success(request, f"Job {job_id} {told}.")
        if not chosen:
            messages.warning(request, "No job was chosen.")
        one = (
            reverse("admin:fencerow_job_change", args=[chosen[0]])
            if request.POST.get("page") == "job"
            else None
        )
        return HttpResponseRedirect(one or reverse("admin:fencerow_job_changelist"))

    def _check(self, request: Any, *, change: bool) -> None:
        may = self.has_change_permission if change else self.has_view_or_change_permission
        if not may(request):
            raise PermissionDenied

    def _page(self, request: Any, template: str, title: str, found: dict[str, Any]) -> Any:
        context = {
            **self.admin_site.each_context(request),
            **found,
            "title": title,
            "opts": self.model._meta,
            "may_change": self.has_change_permission(request),
            "dashboard": read_settings().dashboard,
        }
        return TemplateResponse(request, template, context)
