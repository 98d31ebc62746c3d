"""Every error has a code of its own and a paragraph in docs/errors.md, and that page names no other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from fencerow.errors import FencerowError
from tools.house.files import ROOT, text_of
from tools.public.errors import kinds

PAGE = "docs/errors.md"
PUBLIC = ("fencerow.errors", "fencerow_proof.errors")
PARAGRAPH_MIN = 60  # letters: what it is, why it comes, and what to do


def faults() -> Iterator[str]:
    often = Counter(kind.code for kind in kinds())
    for kind in kinds():
        yield from (f"{kind.__name__}: {fault}" for fault in _of_the_class(kind, often))
    headings = re.findall(r"^### (FR-\d{3}) (\w+)$", text_of(ROOT / PAGE), re.MULTILINE)
    expected = [(kind.code, kind.__name__) for kind in kinds()]
    for code, name in sorted(set(headings) ^ set(expected)):
        what = "describe it" if (code, name) in expected else "take it out: there is no such error"
        yield f"{PAGE}: {code} {name}: {what}"
    if sorted(headings) != headings:
        yield f"{PAGE}: bring the errors into the order of their codes"
    for kind in kinds():
        if len(_paragraph(kind)) < PARAGRAPH_MIN:
            yield f"{PAGE}: {kind.code}: say what it is, why it comes, and what to do"


def _of_the_class(kind: type[FencerowError], often: Counter[str]) -> Iterator[str]:
    if "code" not in vars(kind) or often[kind.code] > 1 or not re.fullmatch(r"FR-\d{3}", kind.code):
        yield f"give it a code of its own, such as FR-123; it has {kind.code}"
    # What is stored of an error is its public name.
    if kind.__module__ not in PUBLIC:
        yield f"say `module` {' or '.join(PUBLIC)}; it says {kind.__module__}"
    if kind.repeat not in ("yes", "no", "ask"):
        yield f"its `repeat` is yes, no or ask, not {kind.repeat!r}"
    if not vars(kind)["__doc__"]:
        yield "give it a docstring"


def _paragraph(kind: type[FencerowError]) -> str:
    found = re.search(
        rf"^### {kind.code} {kind.__name__}\n(.+?)(?=\n\n#|\Z)",
        text_of(ROOT / PAGE),
        re.MULTILINE | re.DOTALL,
    )
    return found[1] if found else ""
