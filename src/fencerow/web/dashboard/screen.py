"""A screen as a record, and what its functions are given. `screens/` has one file for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from fencerow.app import App
from fencerow.client import Client
from fencerow.core.model.person import Person, Via
from fencerow.core.store import store
from fencerow.core.wing import witnessed
from fencerow.db.run import ask
from fencerow.web.dashboard.canary import Canary
from fencerow.web.dashboard.cost import ROWS_MAX, STATEMENTS_MAX, Cost, LookingClient
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.roles import Role, Visitor
from fencerow.web.dashboard.source import Source
from fencerow.web.dashboard.traffic import KeptPictures

Values = Mapping[str, str]
REASON = "from the dashboard"
UNNAMED = "a visitor without a name"


class Section(StrEnum):
    """Where a screen stands in the side of the page."""

    WORK = "Work"
    ORDER = "Order"
    SYSTEM = "System"


@dataclass(frozen=True)
class Look:
    """One look at the database for a view. All visitors of the same address share what it finds.

    `params` are those of the path, `query` those behind the `?`, each given once.
    """

    app: App
    params: Values
    query: Values
    cost: Cost
    problems: Problems
    redactor: Redactor
    canary: Canary = field(default_factory=Canary)
    kept: KeptPictures = field(default_factory=KeptPictures)
    source: Source | None = None

    @cached_property
    def client(self) -> Client:
        """The verbs that look. Their statements and rows are counted."""
        return LookingClient(self.app.client, self.cost, self.source)

    async def now_us(self) -> int:
        """The database's clock, in microseconds since 1970. It is a statement."""
        return await self.client.arun(ask(store.clock()))


@dataclass(frozen=True)
class Act:
    """One press of a button. `form` has what was sent, each field once and without spaces around.

    `address` and `request_id`: from where it came, and by what the logs find it.
    """

    app: App
    visitor: Visitor
    params: Values
    form: Values
    address: str | None
    request_id: str
    canary: Canary = field(default_factory=Canary)

    @cached_property
    def client(self) -> Client:
        """The verbs that change something: what they change is told under the visitor's name, and audited."""
        common = self.app.client
        made = Client(
            witnessed(common.engine, self.person),
            actor=self.visitor.name,
            telemetry=common.telemetry,
            ready=common.make_ready,
        )
        made.encode_arguments, made.packing = common.encode_arguments, common.packing
        return made

    @property
    def person(self) -> Person:
        """Who presses, for those who watch over that. A host may let somebody act whom it does not name."""
        said = self.form.get("reason") or None
        return Person(self.visitor.name or UNNAMED, Via.DASHBOARD, self.address, self.request_id, said)

    @property
    def reason(self) -> str:
        """Why, as the visitor wrote it; else where it came from."""
        return self.form.get("reason") or REASON


@dataclass(frozen=True, slots=True)
class PressAnswer:
    """What became of a press, in a sentence for who pressed. `changed`: it has changed something; else it stood so
    already. `to`: the page that is shown next, below the dashboard's own path; None is the one where the button is."""

    text: str
    changed: bool = True
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A button's other end: `POST path`. `act` makes one guarded call, and may raise our errors: they are told."""

    path: str
    act: Callable[[Act], Awaitable[PressAnswer]]
    role: Role = Role.ACT


@dataclass(frozen=True, slots=True)
class Screen:
    """A page: `GET path`, shown with `templates/NAME.html`.

    `view` finds what the template shows, under these names. `section`, `place` and `title`: its line in the side of
    the page; no section, no line. `key`: after `g`, it leads there. `live`: the block `live` of the template is sent
    again while the page is open. `statements_max`: above the common
    ceiling only for what is looked at on request; `look_s`: such a look may take so long. `rows_max`: above it only for
    what reads each queue.
    """

    name: str
    path: str
    title: str
    view: Callable[[Look], Awaitable[dict[str, Any]]]
    section: Section | None = None
    place: int = 0
    key: str = ""
    live: bool = True
    statements_max: int = STATEMENTS_MAX
    rows_max: int = ROWS_MAX
    look_s: float | None = None
    actions: Sequence[Action] = field(default=())
