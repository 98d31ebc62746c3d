"""Every rule of the guide: its wrong twin goes wrong in the order that is named there, its right twin does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.whole.guide.orders import ON_POSTGRES, ORDERS
from tests.whole.guide.page import Rule, rules
from tests.whole.guide.scene import Scene

RULES = rules()


@pytest.mark.parametrize("kind", ["wrong", "right"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.number}")
def test_a_twin_ends_as_it_says(
    rule: Rule, kind: str, sqlite_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(request.getfixturevalue("postgres_url")) if rule.title in ON_POSTGRES else None
    scene = Scene(sqlite_path.parent, rule.twins[kind], url)
    try:
        end = ORDERS[rule.title](scene)
    finally:
        scene.close()

    assert end == rule.twins[kind].end


def test_each_rule_has_two_twins_that_differ_and_an_order() -> None:
    assert len(RULES) >= 12
    assert [rule.number for rule in RULES] == list(range(1, len(RULES) + 1))
    for rule in RULES:
        assert set(rule.twins) == {"wrong", "right"}, rule.title
        assert rule.twins["wrong"].end != rule.twins["right"].end
    assert [rule.title for rule in RULES] == list(ORDERS)
