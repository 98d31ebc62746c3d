"""The settings of one process: those of the core, with those of the wings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencerow.audit.settings import AuditSettings
from fencerow.core.config import CoreConfig
from fencerow.core.model.seconds import Seconds
from fencerow.doctor.settings import HorizonSettings
from fencerow.events.settings import EventSettings
from fencerow.flows.settings import FlowSettings
from fencerow.guards.settings import GuardSettings
from fencerow.metrics.settings import MetricsSettings
from fencerow.output.settings import OutputSettings
from fencerow.payloads.settings import PayloadSettings
from fencerow.processes.settings import ChildSettings
from fencerow.retention.settings import RetentionSettings
from fencerow.schedules.settings import ScheduleSettings
from fencerow.steps.settings import StepSettings
from fencerow.web.settings import WebSettings


@dataclass(frozen=True, kw_only=True, repr=False)
class Config(
    AuditSettings,
    WebSettings,
    MetricsSettings,
    ScheduleSettings,
    GuardSettings,
    EventSettings,
    RetentionSettings,
    HorizonSettings,
    OutputSettings,
    StepSettings,
    FlowSettings,
    PayloadSettings,
    ChildSettings,
    CoreConfig,
):
    """The settings of one process. Built directly or by `load`; either way every value is checked.

    A length of time (`…_s`) is a number of seconds or a timedelta; it is kept in seconds.

    Raises:
        ConfigError: a value has the wrong type, is out of range, or contradicts another one.
    """

    if TYPE_CHECKING:
        # For type checkers: a length of time may be a timedelta. A test compares the names with the fields.
        def __init__(
            self,
            *,
            url: str | None = ...,
            listen_url: str | None = ...,
            schema: str = ...,
            table_prefix: str = ...,
            pool_max: int = ...,
            connect_timeout_s: Seconds = ...,
            start_patience_s: Seconds = ...,
            statement_timeout_s: Seconds = ...,
            prepared_statements: str = ...,
            busy_timeout_s: Seconds = ...,
            journal_mode: str = ...,
            lease_s: Seconds = ...,
            renew_s: Seconds = ...,
            sweep_s: Seconds = ...,
            poll_max_s: Seconds = ...,
            poll_min_s: Seconds = ...,
            turn_claim_s: Seconds = ...,
            unknown_max_s: Seconds = ...,
            slots: int = ...,
            prefetch_s: Seconds = ...,
            labels: str | None = ...,
            priority_ageing_s: Seconds | None = ...,
            payload_bytes_max: int = ...,
            outside_store: str | None = ...,
            outside_bytes_min: int = ...,
            outside_timeout_s: Seconds = ...,
            outside_orphan_s: Seconds = ...,
            log_format: str = ...,
            log_level: str | None = ...,
            log_job_level: str = ...,
            actor: str | None = ...,
            attempts_max: int = ...,
            crashes_max: int = ...,
            snoozes_max: int = ...,
            timeout_s: Seconds = ...,
            key_lifetime_s: Seconds = ...,
            suspects_max: int = ...,
            child_start_s: Seconds = ...,
            hung_max: int = ...,
            cancel_raise_s: Seconds = ...,
            cancel_kill_s: Seconds = ...,
            shutdown_s: Seconds | None = ...,
            child_idle_max: int = ...,
            child_idle_s: Seconds = ...,
            child_jobs_max: int = ...,
            child_resident_bytes_max: int = ...,
            retention_succeeded_s: Seconds = ...,
            retention_failed_s: Seconds = ...,
            retention_cancelled_s: Seconds = ...,
            retention_period_s: Seconds = ...,
            retention_ephemeral_s: Seconds = ...,
            retention_count_max: int | None = ...,
            horizon_end_after_s: Seconds | None = ...,
            horizon_end_allow: str | None = ...,
            retention_events_s: Seconds = ...,
            retention_unread_events_s: Seconds = ...,
            retention_events_max: int | None = ...,
            mutex_stale_s: Seconds = ...,
            retention_sources_s: Seconds = ...,
            schedules: str = ...,
            schedules_owner: str = ...,
            schedules_version: int = ...,
            schedules_poll_s: Seconds = ...,
            entities_refresh_s: Seconds = ...,
            retention_ticks_s: Seconds = ...,
            flows: str = ...,
            flow_retention_s: Seconds = ...,
            steps_max: int = ...,
            steps_bytes_max: int = ...,
            output_chunk_bytes_max: int = ...,
            output_chunks_max: int = ...,
            output_bytes_max: int = ...,
            output_write_s: Seconds = ...,
            retention_output_s: Seconds = ...,
            metrics_look_s: Seconds = ...,
            metrics_patience_s: Seconds = ...,
            metrics_jobs_max: int = ...,
            metrics_labels_max: int = ...,
            metrics_last_scrape_s: Seconds = ...,
            web_token_cache_s: Seconds = ...,
            web_body_bytes_max: int = ...,
            web_body_timeout_s: Seconds = ...,
            web_body_keys_max: int = ...,
            web_body_items_max: int = ...,
            web_headers_bytes_max: int = ...,
            webhook_allow: str | None = ...,
            retention_webhooks_s: Seconds = ...,
            retention_audit_s: Seconds = ...,
            web_requests_max: int = ...,
            web_requests_caller_max: int = ...,
            web_waiting_max: int = ...,
            web_waiting_caller_max: int = ...,
            web_rate_per_second: float = ...,
            web_rate_burst: int = ...,
            web_callers_max: int = ...,
            web_hosts: str | None = ...,
            web_proxies: str | None = ...,
            web_replica_url: str | None = ...,
            web_replica_lag_s: Seconds = ...,
            web_request_s: Seconds = ...,
            web_connections_max: int = ...,
            web_headers_timeout_s: Seconds = ...,
            web_idle_timeout_s: Seconds = ...,
            web_write_timeout_s: Seconds = ...,
            web_unread_bytes_max: int = ...,
            web_bodies_bytes_max: int = ...,
            web_unready_s: Seconds = ...,
            web_drain_s: Seconds = ...,
            web_stream_s: Seconds = ...,
            web_streams_max: int = ...,
            web_streams_caller_max: int = ...,
            web_download_secret: str | None = ...,
            discord_public_key: str | None = ...,
        ) -> None: ...
