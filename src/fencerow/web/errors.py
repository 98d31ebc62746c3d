"""Errors of the front door: of tokens and the gateway (85x, 87x, 88x), of webhooks (86x), of the dashboard (92x),
of answers in place and Discord (97x)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class TokenNotFound(FencerowError):
    """There is no API token with this id: nobody made one, or it was over for so long that it was removed."""

    code = "FR-850"


class TokenOver(FencerowError):
    """The API token was over already: somebody else revoked it, or it expired. Nothing was changed."""

    code = "FR-851"


class RequestTooLarge(InvalidInput):
    """A request's body, or its headers, are longer than the limit. The rest of it was not read; nothing was stored."""

    code = "FR-855"
    status: int = 413
    closes: ClassVar[bool] = True  # what was not read would be taken for the next request

    def __init__(self, what: str, why: str = "", fix: str = "", *, status: int = 413) -> None:
        super().__init__(what, why, fix)
        self.status = status


class RequestTooSlow(FencerowError):
    """A request's body did not come in time. The rest of it was not read; nothing was stored."""

    code = "FR-856"
    repeat = "yes"
    status: ClassVar[int] = 408
    closes: ClassVar[bool] = True


class UnsupportedBody(InvalidInput):
    """A request's body is no JSON in UTF-8 by its headers, or is compressed. It was not read; nothing was stored."""

    code = "FR-857"
    status: ClassVar[int] = 415
    closes: ClassVar[bool] = True


class InvalidRequest(InvalidInput):
    """A request's address, body or one of its headers cannot be read, or in two ways. Nothing was stored."""

    code = "FR-858"
    status: int = 400
    closes: bool = False

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, status: int = 400, closes: bool = False
    ) -> None:
        super().__init__(what, why, fix)
        self.status = status
        self.closes = closes


class TooManyRequests(FencerowError):
    """This caller sends more than one may, or all together do. Nothing was stored; repeat after `retry_after_s`."""

    code = "FR-859"
    repeat = "yes"
    status: int = 429
    closes: bool = False

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        retry_after_s: float = 1.0,
        status: int = 429,
        closes: bool = False,
    ) -> None:
        super().__init__(what, why, fix)
        self.retry_after_s = retry_after_s
        self.status = status
        self.closes = closes


class EndpointNotFound(FencerowError):
    """There is no webhook endpoint of this name: nobody made one, or it was removed."""

    code = "FR-863"
    status: ClassVar[int] = 404


class EndpointConflict(FencerowError):
    """The webhook endpoint is not as the change expects it, so nothing was changed. Look at it, and decide again."""

    code = "FR-864"
    status: ClassVar[int] = 409


class NotAuthenticated(FencerowError):
    """The request came without a token that is known and live. Send `Authorization: Bearer …`."""

    code = "FR-870"
    status: ClassVar[int] = 401


class NotAllowed(FencerowError):
    """The token is not good for this: it lacks the scope, or the queue. Use another one."""

    code = "FR-871"
    status: ClassVar[int] = 403


class NoSuchRoute(InvalidInput):
    """The gateway has nothing at this path, or not with this method. `/openapi.json` has all there is."""

    code = "FR-872"
    status: int = 404

    def __init__(self, what: str, why: str = "", fix: str = "", *, status: int = 404) -> None:
        super().__init__(what, why, fix)
        self.status = status


class Unready(FencerowError):
    """The gateway takes no requests now: it stops, or its database cannot be used. Nothing was stored; repeat."""

    code = "FR-873"
    status: ClassVar[int] = 503
    repeat = "yes"


class TooLate(FencerowError):
    """The answer took longer than a request may. What was asked for may have been done: repeat it under the same
    idempotency key, or look."""

    code = "FR-874"
    status: ClassVar[int] = 503
    repeat = "ask"


class UnderMaintenance(FencerowError):
    """An operator lets the gateways take no requests for a while. Nothing was stored; repeat after `retry_after_s`."""

    code = "FR-875"
    status: ClassVar[int] = 503
    repeat = "yes"

    def __init__(self, what: str, why: str = "", fix: str = "", *, retry_after_s: float = 60.0) -> None:
        super().__init__(what, why, fix)
        self.retry_after_s = retry_after_s


class ForeignRequest(FencerowError):
    """A form of the dashboard was not sent by a page of it that this browser has. Nothing was changed."""

    code = "FR-920"
    status: ClassVar[int] = 403


class PreviewOver(FencerowError):
    """What a bulk action would do was shown too long ago to be done as it was shown. Nothing was changed."""

    code = "FR-925"
    status: ClassVar[int] = 409


class NoAddress(FencerowError):
    """The gateway can make no address for a result: nobody has set `web_download_secret`. Ask for the result itself."""

    code = "FR-885"
    status: ClassVar[int] = 409


class AddressRefused(FencerowError):
    """An address of a result is not one that a gateway here made, or it was cut or altered. Ask for a new one."""

    code = "FR-886"
    status: ClassVar[int] = 403


class AddressOver(FencerowError):
    """An address of a result has expired, or its job was run again since. Ask for a new one."""

    code = "FR-887"
    status: ClassVar[int] = 410


class AnswerBusy(FencerowError):
    """It was not known in time whether the job is stored. `job_ids` has its id: submit again under it, or look."""

    code = "FR-975"
    status: ClassVar[int] = 503
    repeat = "ask"

    def __init__(self, what: str, why: str = "", fix: str = "", *, job_ids: tuple[str, ...] = ()) -> None:
        super().__init__(what, why, fix)
        self.job_ids = job_ids


class InteractionRefused(FencerowError):
    """A request to the endpoint of Discord's interactions is not its own, was altered, or is old. Nothing was done."""

    code = "FR-976"
    status: ClassVar[int] = 401


class DiscordRefused(FencerowError):
    """Discord did not take a message of a job. `retryable` and `retry_after` say whether and when it is tried again."""

    code = "FR-977"

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        status_code: int = 0,
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, why, fix)
        self.status_code = status_code
        self.retryable = retryable
        self.retry_after = retry_after
