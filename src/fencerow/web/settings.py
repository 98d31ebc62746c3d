"""The settings of the front door, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number, text
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class WebSettings(Settings):
    """How what comes over HTTP is judged."""

    web_token_cache_s: float = number(
        5.0,
        0.0,
        60.0,
        "How long a gateway believes what it read of an API token: a revoke counts everywhere after so long at most.",
    )
    web_body_bytes_max: int = number(1024 * 1024, 1024, 2**30, "How large the body of one request may be.")
    web_body_timeout_s: float = number(
        10.0, 0.1, 3600.0, "How long the body of one request may take to come, whatever its length."
    )
    web_bodies_bytes_max: int = number(
        32 * 2**20,
        2**20,
        2**40,
        "How much the bodies of all requests together may hold beyond 16 KiB of each. Above, the one that has been "
        "coming for longest is given up.",
    )
    web_body_keys_max: int = number(
        10_000, 100, 10**7, "How many names the objects in one body may have together."
    )
    web_body_items_max: int = number(
        100_000, 1000, 10**8, "How many values one body may hold, those in lists and those in objects."
    )
    web_headers_bytes_max: int = number(
        32 * 1024, 4096, 2**20, "How large all headers of one request together may be."
    )
    webhook_allow: str | None = text(
        None,
        "Where webhooks may go beyond public addresses by https: networks, hosts, `http://` origins, with commas.",
    )
    retention_webhooks_s: float = number(
        30 * DAY_S, 60.0, 3650 * DAY_S, "How long webhooks are kept that were delivered; others are kept."
    )
    web_requests_max: int = number(
        200,
        1,
        100_000,
        "How many requests are served at once; those that wait (long polls, streams) count apart.",
    )
    web_requests_caller_max: int = number(50, 1, 100_000, "How many of them one caller may have.")
    web_waiting_max: int = number(
        1000, 1, 1_000_000, "How many requests may wait at once (long polls, streams)."
    )
    web_waiting_caller_max: int = number(200, 1, 1_000_000, "How many of them one caller may have.")
    web_rate_per_second: float = number(
        100.0, 0.0, 1e6, "How many requests one caller may send each second, for long; 0: no bound."
    )
    web_rate_burst: int = number(200, 1, 10**6, "How many requests one caller may send at once.")
    web_callers_max: int = number(
        10_000,
        100,
        10**6,
        "How many callers are counted apart; those who come when it is full share 64 counts.",
    )
    web_hosts: str | None = text(
        None,
        "The names under which it may be asked (`Host`), with commas; `*.example.com` is all below it, `*` all. By "
        "default addresses and `localhost`, which no foreign page can make its own name.",
    )
    web_proxies: str | None = text(
        None,
        "The networks of proxies whose `X-Forwarded-For` is believed, with commas, such as `10.0.0.0/8`; `unix` for "
        "one that comes through a socket file. By default none is believed.",
    )
    web_replica_url: str | None = text(
        None,
        "A standby of PostgreSQL from which the dashboard reads, as long as it keeps up. Actions are made on the "
        "database itself. By default pages are read from there, too.",
        secret=True,
    )
    web_replica_lag_s: float = number(
        10.0,
        0.0,
        3600.0,
        "By how much that standby may be behind; beyond it, and so long after a change, pages are read from the "
        "database.",
    )
    web_request_s: float = number(30.0, 0.1, 3600.0, "How long a request may take that does not ask to wait.")
    web_connections_max: int = number(
        2_000,
        1,
        1_000_000,
        "How many connections the gateway serves at once. When all are in use, those that are idle and those whose "
        "request is not whole make room for newcomers.",
    )
    web_headers_timeout_s: float = number(
        10.0,
        0.1,
        3600.0,
        "How long a connection has for its TLS, and for the headers of a request from its begin; then it is ended.",
    )
    web_idle_timeout_s: float = number(
        15.0, 1.0, 3600.0, "How long a connection is kept between two requests."
    )
    web_write_timeout_s: float = number(
        30.0,
        0.1,
        3600.0,
        "How long an answer may wait for its reader, who must take 32 KiB or all in this time; else he is cut off.",
    )
    web_unread_bytes_max: int = number(
        32 * 2**20,
        2**16,
        2**40,
        "How much all answers together may hold that wait for their readers; above, those who wait for longest go.",
    )
    web_unready_s: float = number(
        0.0,
        0.0,
        300.0,
        "How long the gateway goes on answering after it was told to stop, while /readyz says no.",
    )
    web_drain_s: float = number(
        30.0, 1.0, 3600.0, "How long requests that are under way may take to end when the gateway stops."
    )
    web_stream_s: float = number(
        300.0,
        1.0,
        86_400.0,
        "How long a stream of a job's events lasts; its reader then comes again and goes on.",
    )
    web_streams_max: int = number(2_000, 1, 1_000_000, "How many streams of events a gateway serves at once.")
    web_streams_caller_max: int = number(500, 1, 1_000_000, "How many of them one caller may have.")
    web_download_secret: str | None = text(
        None,
        "By what the gateway signs addresses of results that expire, 32 characters or more; the same for all gateways.",
        secret=True,
    )
    discord_public_key: str | None = text(
        None,
        "The public key of your application at Discord, 64 hexadecimal digits, by which interactions are verified.",
    )
