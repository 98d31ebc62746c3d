"""Templates: what they may use, and how a page or its live part is made of what a look found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from fencerow.core.model.state import State
from fencerow.db.text import amount
from fencerow.web.dashboard import words
from fencerow.web.dashboard.redacting import text_without_secrets
from fencerow.web.dashboard.roles import Role, Visitor
from fencerow.web.dashboard.screen import PressAnswer, Screen, Section
from fencerow.web.dashboard.searching import term
from fencerow.web.dashboard.statics import Statics


@dataclass(frozen=True, slots=True)
class Visit:
    """Who sees a page, and where. `at`: its address below `base`. `form`: the token that its forms send."""

    visitor: Visitor
    base: str
    at: str
    form: str
    told: PressAnswer | None = None
    refused: bool = False
    may_leave: bool = False
    read_only: bool = False

    @property
    def may_act(self) -> bool:
        """Whether buttons are shown that change jobs, queues and workers."""
        return self.visitor.role >= Role.ACT

    @property
    def may_admin(self) -> bool:
        """Whether those are, too, that only an administrator may press."""
        return self.visitor.role >= Role.ADMIN


class Pages:
    """All templates, also those of a package beside ours. Everything that is put into one is escaped."""

    def __init__(self, screens: Sequence[Screen], statics: Statics, also: str | None = None) -> None:
        self._environment = environment = Environment(
            autoescape=True,
            loader=ChoiceLoader(
                [PackageLoader(each) for each in ("fencerow.web.dashboard", also) if each is not None]
            ),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(
            number=words.number, span=words.span, utc=words.utc, iso=words.iso, bytes=words.bytes_told,
            data=words.data, one_line=words.one_line, counted=words.counted, without_secrets=text_without_secrets,
            coded=words.coded,
        )  # fmt: skip
        environment.globals.update(
            ago=words.ago, amount=amount, term=term, states=[state.value for state in State], static=statics.address,
            sections=_sections(screens), shortcuts=[each for each in screens if each.key],
        )  # fmt: skip
        environment.globals["parts"] = environment.get_template("parts.html").module

    def page(self, name: str, visit: Visit, found: Mapping[str, Any]) -> str:
        """A whole page, or the piece of one that a template without `base.html` is."""
        return self._environment.get_template(f"{name}.html").render(**found, visit=visit)

    def live(self, name: str, visit: Visit, found: Mapping[str, Any]) -> str:
        """The block `live` of a page alone."""
        template = self._environment.get_template(f"{name}.html")
        context = template.new_context({**found, "visit": visit})
        return "".join(template.blocks["live"](context))


def _sections(screens: Sequence[Screen]) -> list[tuple[str, list[Screen]]]:
    found = [(section.value, [each for each in screens if each.section is section]) for section in Section]
    return [(name, lines) for name, lines in found if lines]
