"""Large payloads in a bucket of a store that speaks S3."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl

from fencerow.core.errors import ConfigError, MissingExtra, StoreUnavailable
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.payloads.outside.store import StoredObject, missing

CONNECT_S, READ_S, TRIES = 5, 30, 3
OPTIONS = ("endpoint", "region")


class S3Store:
    """Objects under a prefix of a bucket. `client` is one of boto3's, or what behaves like it.

    Made by a URL it takes credentials from where boto3 finds them: the environment, a profile, the machine's role.
    """

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix.strip("/") + "/"

    def __repr__(self) -> str:
        return f"<S3Store {self._bucket}/{self._prefix}>"

    @staticmethod
    def at(bucket: str, prefix: str, query: str = "") -> S3Store:
        """The one at `s3://bucket/prefix?endpoint=https://…&region=…`.

        Raises:
            ConfigError: an option is unknown. MissingExtra: boto3 is not installed.
        """
        options = dict(parse_qsl(query))
        if unknown := options.keys() - set(OPTIONS):
            raise ConfigError(
                f"outside_store has the option {min(unknown)[:40]!r}",
                f"known are {', '.join(OPTIONS)}",
                "correct outside_store; credentials come from the environment",
            )
        try:
            import boto3
            from botocore.config import Config
        except ImportError:
            raise MissingExtra(
                "an S3 store cannot be used",
                "the library boto3 is not installed",
                'pip install "fencerow[s3]"',
            ) from None
        settings = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"total_max_attempts": TRIES, "mode": "standard"},
        )
        endpoint, region = options.get("endpoint"), options.get("region")
        return S3Store(
            boto3.client("s3", endpoint_url=endpoint, region_name=region, config=settings), bucket, prefix
        )

    def put(self, name: str, data: bytes) -> None:
        """Keep the data as an object. An answer that comes says that it is stored whole."""
        with self._told("written", name):
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=data)

    def get(self, name: str, bytes_max: int) -> bytes:
        """What the object holds, up to one byte more than `bytes_max`.

        Raises:
            PayloadMissing: there is no such object.
        """
        with self._told("read", name):
            found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            with contextlib.closing(found["Body"]) as body:
                data: bytes = body.read(bytes_max + 1)
            if len(data) < min(found["ContentLength"], bytes_max + 1):
                raise OSError("the answer was cut")
            return data

    def address(self, name: str, expires_s: Seconds) -> str:
        """A presigned URL of the object, which whoever has it reads for so long. Whether it is there is not asked."""
        with self._told("read", name):
            wanted = {"Bucket": self._bucket, "Key": self._prefix + name}
            url: str = self._client.generate_presigned_url(
                "get_object", Params=wanted, ExpiresIn=int(in_seconds(expires_s))
            )
            return url

    def delete(self, name: str) -> None:
        """Remove the object."""
        with self._told("written", name):
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects in the order of their names, 1,000 with each request."""
        more: dict[str, str] = {}
        while True:
            with self._told("read", ""):
                found = self._client.list_objects_v2(
                    Bucket=self._bucket, Prefix=self._prefix + prefix, **more
                )
            yield from _objects(found, self._prefix)
            if not found.get("IsTruncated"):
                return
            more = {"ContinuationToken": found["NextContinuationToken"]}

    @contextlib.contextmanager
    def _told(self, what: str, name: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code == "NoSuchKey":
                raise missing(name, f"the bucket {self._bucket}") from None
            raise self._away(what, code) from error
        except (BotoCoreError, OSError) as error:
            raise self._away(what, type(error).__name__) from error

    def _away(self, what: str, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"the bucket of large payloads cannot be {what}: {why}",
            f"it is {self._bucket}, under {self._prefix}",
            "look at the store, its credentials and outside_store; what was not stored can be repeated",
        )


def _objects(answer: dict[str, Any], prefix: str) -> list[StoredObject]:
    now = _told_time(answer)
    return [
        StoredObject(each["Key"].removeprefix(prefix), (now - each["LastModified"]).total_seconds())
        for each in answer.get("Contents", ())
    ]


def _told_time(answer: dict[str, Any]) -> datetime:
    """When the server answered, by the clock that dates its objects; by this host's where it does not say."""
    told = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
    return datetime.now(UTC) if told is None else parsedate_to_datetime(told)
