"""Where a store of large payloads is, by its URL."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from fencerow.core.errors import ConfigError
from fencerow.payloads.outside.store import PayloadStore


def store_at(url: str) -> PayloadStore:
    """The store at `file:///folder` or `s3://bucket/prefix`. Nothing is opened or made yet.

    Raises:
        ConfigError: it names no store. MissingExtra: its library is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path.strip("/") and not parts.netloc:
        from fencerow.payloads.outside.folder import FolderStore

        return FolderStore(unquote(parts.path))
    if parts.scheme == "s3" and parts.netloc and parts.path.strip("/"):
        from fencerow.payloads.outside.s3 import S3Store

        return S3Store.at(parts.netloc, parts.path.strip("/"), parts.query)
    raise ConfigError(
        f"outside_store names no store: its scheme is {parts.scheme[:20]!r}",
        "file:///folder or s3://bucket/prefix is expected, with a folder or prefix for this database alone",
        "correct outside_store",
    )
