"""What docs/guarantees.md and the README claim is what docs/proof.md has tests for, sentence by sentence, both ways."""

from __future__ import annotations

import re
from inspect import signature

import pytest

from fencerow import Config
from fencerow.core.db.postgres_session import IDLE_S
from fencerow.core.worker.blocked import BLOCKED_S
from fencerow.core.worker.roster import PATIENCE_S
from fencerow.events.delivery import GRACE_S
from fencerow.guards.once import once
from fencerow.retention.maintenance import REPEATED_KEPT_S
from tests.house.proof import (
    Row,
    Section,
    chapter,
    faults,
    is_there,
    plain,
    promises,
    readme_claims,
    sections,
    sentences,
    unfit,
)
from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
PROOF = (ROOT / "docs" / "proof.md").read_text("utf-8")


def test_each_sentence_has_its_tests_and_each_row_its_sentence() -> None:
    promised, readme = promises(PAGE), readme_claims(README)

    assert [f"{number}" for number in range(1, 13)] == [name for name in promised if name.isdigit()]
    assert {"where", "once", "window", "replace", "transitions"} < promised.keys()
    assert len(promised) > 25 and len(readme) > 20
    assert not promised.keys() & readme.keys()
    assert faults(promised | readme, sections(PROOF)) == [], "mend docs/proof.md, or the sentence"


def test_numbers_of_the_pages_are_the_defaults() -> None:
    config, day_s = Config(), 86400.0
    defaults = {
        ("6", "lease + sweep, 45 s"): (config.lease_s + config.sweep_s, 45),
        ("6", "suspects_max (4)"): (config.suspects_max, 4),
        ("6", "have lived for 10 s"): (PATIENCE_S, 10),
        ("5", "14 days more by default (key_lifetime_s)"): (config.key_lifetime_s, 14 * day_s),
        ("5", "up to a day later"): (REPEATED_KEPT_S, day_s),
        ("8", "retention_failed_s (90 days)"): (config.retention_failed_s, 90 * day_s),
        ("8", "lease + renew_s, 35 s"): (config.lease_s + config.renew_s, 35),
        ("8", "delays events there by 10 s"): (IDLE_S, 10),
        ("8", "timeout_s + 5 s"): (GRACE_S, 5),
        ("9", "retention_ticks_s, 7 days"): (config.retention_ticks_s, 7 * day_s),
        ("once", "lifetime_s (a day)"): (signature(once).parameters["lifetime_s"].default, day_s),
        ("replace", "retention_sources_s (30 days)"): (config.retention_sources_s, 30 * day_s),
        ("blocked-loop", "After a second its worker names it"): (BLOCKED_S, 1),
        ("unread", "retention_unread_events_s (30 days)"): (config.retention_unread_events_s, 30 * day_s),
    }
    page = promises(PAGE)

    assert [words for (name, words), _ in defaults.items() if words not in page[name]] == []
    assert [words for (_, words), (here, there) in defaults.items() if here != there] == []


def test_the_page_stays_short() -> None:
    assert len(PAGE.splitlines()) <= 120


def test_no_claim_stands_without_an_anchor() -> None:
    """Every item of a list in the guarantees is found by the anchor that it begins with."""
    items = re.findall(r"^(?:- |\d+\. )(.{0,12})", PAGE, re.MULTILINE)
    assert [item for item in items if not item.startswith('<a id="')] == []


def test_each_guard_and_each_limit_says_where_to_decide() -> None:
    for name in ("Guards for your own operations and tables", "What it does not promise"):
        items = re.split(r"^- ", chapter(PAGE, name), flags=re.MULTILINE)[1:]
        assert len(items) >= 4
        for item in items:
            assert re.search(r"\(\[(guide|security)\]\([^)#]+#[^)]+\)\)\s*$", item), item


# Controls: what does not fit is found.


THERE = "tests/house/test_proof.py::test_the_page_stays_short"
GOOD = Section("Kept.", (Row("Nothing is lost", (THERE,)), Row("Losers are told", (THERE,))))
CLAIM = "Kept. Nothing is lost at all. Losers are told."


def test_a_good_section_has_no_faults() -> None:
    assert unfit(CLAIM, GOOD) == []


@pytest.mark.parametrize(
    ("claim", "section", "told"),
    [
        (CLAIM + " It never sleeps.", GOOD, "no row for 'It never sleeps.'"),
        ("Kept. Nothing is lost at all.", GOOD, "'Losers are told' does not stand there"),
        ("Nothing is lost. Losers are told.", GOOD, "'Kept.' does not stand there"),
        (CLAIM, Section("Kept.", ()), "no row"),
        (CLAIM, Section("Kept.", (Row("Nothing is lost", ()), *GOOD.rows)), "names no test"),
        (CLAIM, Section("Kept.", (Row("Kept", (THERE + "er",)), *GOOD.rows)), "shorter is not there"),
    ],
)
def test_what_does_not_fit_is_told(claim: str, section: Section, told: str) -> None:
    assert any(told in each for each in unfit(claim, section))


def test_a_claim_without_a_section_and_a_section_without_a_claim_are_told() -> None:
    assert faults({"1": CLAIM}, {"9": GOOD}) == [
        "1: the page of proofs does not have it",
        "9: no page claims it",
    ]


@pytest.mark.parametrize(
    "proof",
    [
        "tests/house/nowhere.py",
        "tests/nowhere",
        "tests/house/tree.py::test_it",
        "docs",
        "tests/house/test_docs.py::DOCS",
    ],
)
def test_a_test_that_is_not_there_is_told(proof: str) -> None:
    assert not is_there(proof)


def test_sentences_are_told_apart() -> None:
    text = plain(
        '- <a id="x"></a>**One.** Two is `a.b`, 3.5 s *long*\n  (see [here](x.md#y)). Three? ([guide](z.md#q))'
    )
    assert sentences(text) == ["One.", "Two is a.b, 3.5 s long (see here).", "Three?"]
