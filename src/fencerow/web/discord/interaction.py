"""An interaction as Discord sends it, as far as it counts here, and what a job needs to reply to it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.payloads.secret import Secret

EPOCH_MS = 1_420_070_400_000  # 2015, from which Discord's ids count
SEQUENCE_BITS = 22
TOKEN_LASTS_S = 15 * 60.0
# A long number in digits. A token stands in a path, so nothing else may be in it.
Snowflake = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,20}\Z")]
Token = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._~-]{1,2000}\Z")]


class InteractionKind(IntEnum):
    """What was done at Discord's side."""

    PING = 1
    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class ReplyTo(msgspec.Struct, frozen=True):
    """Where the reply of an interaction is edited, for a parameter of a job. The token is a secret of 15 minutes.

    It is hidden in the dashboard, and by `fencerow jobs show -A`.
    """

    application_id: Snowflake
    interaction_id: Snowflake
    token: Annotated[Token, Secret]

    def __repr__(self) -> str:
        return f"<ReplyTo {self.interaction_id}>"

    @property
    def made_s(self) -> float:
        """When the interaction was made, by Discord's clock, in seconds since 1970."""
        return _made_ms(self.interaction_id) / 1000


class Interaction(msgspec.Struct, frozen=True):
    """One interaction. `data` is what came with it, as Discord sends it; `options` are those of a command, by name."""

    id: Snowflake
    application_id: Snowflake
    type: int
    token: Token
    data: dict[str, Any] = {}
    channel_id: str | None = None
    guild_id: str | None = None
    member: dict[str, Any] | None = None
    user: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    locale: str | None = None

    def __repr__(self) -> str:
        return f"<Interaction {self.id}>"

    @property
    def name(self) -> str:
        """The name of the command; of a component or a modal its `custom_id` up to the first colon."""
        said = (
            self.data.get("name")
            if self.type == InteractionKind.COMMAND
            else self.custom_id.partition(":")[0]
        )
        return said if isinstance(said, str) else ""

    @property
    def custom_id(self) -> str:
        """What your program called the component or the modal; empty for a command."""
        said = self.data.get("custom_id")
        return said if isinstance(said, str) else ""

    @property
    def options(self) -> Mapping[str, Any]:
        """The values of a command's options by name; of a subcommand those within it."""
        return dict(_options(self.data.get("options")))

    @property
    def user_id(self) -> str:
        """Whose it is; in a server its member's."""
        told = (self.member or {}).get("user") or self.user or {}
        return str(told.get("id") or "")

    @property
    def reply(self) -> ReplyTo:
        """Where its reply is edited."""
        return ReplyTo(self.application_id, self.id, self.token)

    @property
    def job_id(self) -> str:
        """The id of its job, made from its own: whoever submits it again finds the same job.

        It has the form of a UUIDv7 of when the interaction was made, so such ids are in the order of time as others.
        """
        drawn = hashlib.sha256(f"{self.application_id}/{self.id}".encode()).digest()
        made = bytearray(_made_ms(self.id).to_bytes(6, "big") + drawn[:10])
        made[6], made[8] = 0x70 | made[6] & 0x0F, 0x80 | made[8] & 0x3F
        return str(uuid.UUID(bytes=bytes(made)))


def _made_ms(snowflake: str) -> int:
    return (int(snowflake) >> SEQUENCE_BITS) + EPOCH_MS


def _options(given: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            if isinstance(each.get("options"), list):  # a subcommand, or a group of them: two levels at most
                found += _options(each["options"])
            else:
                found.append((each["name"], each.get("value")))
    return found


_reading = msgspec.json.Decoder(Interaction)


def interaction_of(body: bytes) -> Interaction:
    """What a verified body says.

    Raises:
        InvalidInput: it is no interaction. The message shows nothing of it.
    """
    try:
        return _reading.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        raise InvalidInput(
            "a signed body is no interaction",
            "JSON is expected with `id`, `application_id`, `type` and `token`",
            "see whether a proxy has changed it",
        ) from None
