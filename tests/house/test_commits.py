"""A commit says what was wrong and why this is right, so that whoever asks in two years finds an answer."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.house.tree import ROOT

# Commits before this one are not judged: a third of them have no body.
SINCE = "8f20bfa9cceda9b6d2800a51fce7653ccbd4a7e1"
TITLE_MAX = 100
BODY_MIN = 30
UNFINISHED = re.compile(r"^(wip|tmp|todo|fixup!|squash!|amend!)(?![a-z])", re.IGNORECASE)
TRAILER = re.compile(r"^[A-Z][\w-]+: \S.*$", re.MULTILINE)


@dataclass(frozen=True)
class Commit:
    """One commit as git tells it."""

    id: str
    title: str
    body: str


def faults(commit: Commit) -> Iterator[str]:
    """What a reader would miss. Trailers such as `Signed-off-by:` are no reasons."""
    if UNFINISHED.search(commit.title):
        yield "is called unfinished: finish it, or put it together with the one that does"
    if len(commit.title) > TITLE_MAX:
        yield f"has a title of {len(commit.title)} characters: {TITLE_MAX} at most, the rest belongs into the body"
    if len(TRAILER.sub("", commit.body).strip()) < BODY_MIN:
        yield "does not say what was wrong and why this is right"


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def commits(*which: str) -> list[Commit]:
    told = git("log", "--no-merges", "--format=%H%x1f%s%x1f%b%x1e", *which)
    return [Commit(*each.strip("\n").split("\x1f")) for each in told.split("\x1e") if each.strip()]


def judged() -> list[Commit]:
    """The commits since that one; in a shallow clone that does not reach so far back, all that are there."""
    if git("cat-file", "-t", SINCE).strip() == "commit":
        return commits("HEAD", f"^{SINCE}")
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        return commits("HEAD")
    pytest.skip(f"commits are not judged here: this tree has no git history since {SINCE[:7]}")


def test_each_commit_says_what_was_wrong_and_why_this_is_right() -> None:
    found = [f"{commit.id[:10]} {commit.title!r} {fault}" for commit in judged() for fault in faults(commit)]
    assert found == [], "amend the message (CONTRIBUTING.md, Commits)"


WHY = "The worker looked only at its own rows, so the others waited. It looks at all of them now."


@pytest.mark.parametrize(
    ("title", "body", "says"),
    [
        ("wip check", WHY, "unfinished"),
        ("WIP: look", WHY, "unfinished"),
        ("fixup! Look at all rows", WHY, "unfinished"),
        ("Look at all rows", "", "why this is right"),
        (
            "Look at all rows",
            "Signed-off-by: Ann <ann@example.org>\nCo-authored-by: Bob <bob@example.org>",
            "why this",
        ),
        ("Look at all rows" * 7, WHY, "100 at most"),
    ],
)
def test_what_is_missing_would_be_found(title: str, body: str, says: str) -> None:
    assert any(says in fault for fault in faults(Commit("1", title, body)))


def test_a_good_commit_is_not_blamed() -> None:
    assert list(faults(Commit("1", "Wipe the slate of a worker that died", WHY))) == []
