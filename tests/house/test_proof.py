"""What docs/guarantees.md and the README claim is what docs/proof.md has tests for, sentence by sentence, both ways."""

from __future__ import annotations

import re

import pytest

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
