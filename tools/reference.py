"""Writes docs/reference/ from docstrings and signatures: python3 -m tools.reference"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fencerow import Config
from fencerow.core.config import settings
from fencerow.core.wing import wings
from fencerow.errors import FencerowError
from tools.public.aliases import aliases
from tools.public.errors import kinds
from tools.public.listed import PAGES, Page, entries, records
from tools.public.names import Entry
from tools.public.source import ROOT, module_of
from tools.public.text import first_sentence, markdown, raises, wrapped

FOLDER = ROOT / "docs" / "reference"
HEAD = "Written by `tools/reference.py` from docstrings and signatures; `dev.py check` compares them."
COMMON = """Every verb that uses the database may raise these errors. The entry of a verb names only further ones.

Raises:
    Unavailable, Busy, ReadOnly, StorageFull: nothing was stored. Repeat it when the cause is gone.
    OutcomeUnknown: the answer was lost, so the call may have worked. Look before you repeat it. A verb whose
        entry says that it may be repeated is safe to call again.
    SchemaMissing, SchemaTooOld: at the first use: run `fencerow migrate`.
    SchemaTooNew, SchemaTampered: at the first use: this code must not work with this database.
    BlockingCall: a sync verb was called inside a running event loop. Nothing was sent. Await its async twin,
        which has an `a` in front of its name.
    UnusableConnection, RetryTransaction: with a `connection` of your own: it cannot be used for this, or you
        must roll back the whole transaction and run it again.
"""
AGAIN = {
    "yes": "yes: nothing was stored",
    "ask": "look first: the outcome is unknown",
    "no": "no: it would fail again",
}


# --- links ----------------------------------------------------------------------------------------------


@cache
def places() -> Mapping[str, str]:
    """Where each name is, from any page of the folder: `publish` is at `events.md#publish`."""
    found: dict[str, str] = {}
    for listed in (records, entries):  # what can be imported wins over a record of the same name
        for page in reversed(PAGES):
            for entry in listed(page):
                if not _is_error(entry):
                    found |= {each.name: f"{page.name}.md#{anchor(each)}" for each in _anchored(entry)}
    return found | {kind.__name__: f"errors.md#{error_anchor(kind)}" for kind in kinds()}


def _anchored(entry: Entry) -> Iterator[Entry]:
    yield entry
    yield from (member for member in entry.members if member.kind == "method")


def link_from(page: str, owner: str = "") -> Callable[[str], str]:
    """How names become links on a page, those of one class first."""

    def link(name: str) -> str:
        place = places().get(f"{owner}.{name}") or places().get(name)
        # A word in small letters alone may be a parameter.
        if place is None or ("." not in name and name == name.lower()):
            return f"`{name}`"
        return f"[`{name}`]({place.removeprefix(f'{page}.md')})"

    return link


def anchor(entry: Entry) -> str:
    """What a heading is turned into by the usual sites."""
    return slug(title(entry))


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def title(entry: Entry) -> str:
    return f"class {entry.name}" if entry.kind == "class" else entry.name


def _is_error(entry: Entry) -> bool:
    return inspect.isclass(entry.found) and issubclass(entry.found, FencerowError)


# --- a page ---------------------------------------------------------------------------------------------


@cache
def pages() -> dict[str, str]:
    """All pages by their file's name."""
    made = {f"{page.name}.md": page_of(page) for page in PAGES}
    return {"index.md": index(), **made, "errors.md": errors_page()}


def page_of(page: Page) -> str:
    """One page: what it is about, a table of what it has, then each name."""
    doc, guides = _told(page)
    linked = ", ".join(f"[{Path(guide).stem}](../{guide})" for guide in guides)
    around = f"In the guide: {linked}. All names, and what every verb may raise: [index](index.md)."
    parts = [f"# {page.package}", HEAD, around, *_about(page, doc)]
    found = [entry for entry in entries(page) if not _is_error(entry)]
    for package, told in _by_package(page).items():
        parts += [] if package == page.package else [f"{_from(package)}:"]
        parts.append("\n".join(_table(told)))
    parts += [part for entry in found for part in _shown(page, entry)]
    if records(page):
        parts += ["## Records", "What the names above take and give."]
        parts += [part for entry in records(page) for part in _shown(page, entry, "###")]
    short = {word: text for entry in (*found, *records(page)) for word, text in aliases(entry).items()}
    if short:
        link = link_from(page.name)
        lines = [wrapped(f"- `{word}`: {markdown(text, link)}", "  ") for word, text in sorted(short.items())]
        parts += ["## Other words in signatures", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _about(page: Page, doc: str) -> Iterator[str]:
    yield markdown(doc, link_from(page.name))
    if page.used:
        yield wrapped(f"How it is used: {markdown(page.used, link_from(page.name))}")
    wing = next((wing for wing in wings() if wing.name == page.wing), None)
    if wing is not None:
        named = ", ".join(f"`fencerow {command.name}`" for command in wing.commands())
        looked = ", ".join(f"`{check.name}`" for check in wing.checks())
        yield from [f"On the command line: {named} ([cli](../cli.md))."] if named else []
        yield from [f"`fencerow doctor` looks at it under {looked}."] if looked else []
    known = [each.name for each in settings(Config) if re.match(page.settings or "$", each.name)]
    if known:
        yield wrapped(f"[Settings](../settings.md): {', '.join(f'`{name}`' for name in known)}.")
    own = [kind for kind in kinds() if _lies_in(kind, page.package) and page is not PAGES[0]]
    if own:
        yield wrapped(f"Its errors: {', '.join(link_from(page.name)(kind.__name__) for kind in own)}.")


def _lies_in(kind: Any, package: str) -> bool:
    return module_of(kind).__name__.startswith(f"{package}.")


def _told(page: Page) -> tuple[str, list[str]]:
    """What a package says of itself, and the pages of docs/ that it names as its guide."""
    doc = inspect.cleandoc(import_module(page.package).__doc__ or "")
    guides = re.search(r"^The guide: (.+)\.$", doc, re.MULTILINE)
    if guides is None:
        return doc, []
    return doc.replace(guides[0], "").strip(), [name.removeprefix("docs/") for name in guides[1].split(", ")]


def _by_package(page: Page) -> dict[str, list[Entry]]:
    """The names of a page by the package from which they are imported, its own first."""
    found: dict[str, list[Entry]] = {}
    for entry in entries(page):
        found.setdefault(entry.package, []).append(entry)
    return found


def _from(package: str) -> str:
    return f"From `{package}`" if package else "Given by an object, imported from nowhere"


def _table(told: Sequence[Entry], there: str = "") -> Iterator[str]:
    yield "| name | what it is |"
    yield "|---|---|"
    for entry in told:
        place = places()[entry.name] if _is_error(entry) else f"{there}#{anchor(entry)}"
        twin = f", `{entry.twin}`" if entry.twin else ""
        yield f"| [`{entry.name}`]({place}){twin} | {first_sentence(entry.doc)} |"


def _shown(page: Page, entry: Entry, level: str = "##") -> Iterator[str]:
    link = link_from(page.name, entry.name)
    yield f"{level} {title(entry)}"
    yield f"[{entry.source}](../../{entry.source})"
    yield from _written(entry)
    if entry.doc:
        yield markdown(entry.doc, link)
    if entry.kind == "class" and (block := _block(entry.found)):
        yield block
    values = [member for member in entry.members if member.kind in ("property", "attribute")]
    if values:
        yield "\n".join(_values(values, link))
    for member in entry.members:
        if member.kind == "method":
            yield f"{level}# {title(member)}"
            yield from _written(member)
            if member.doc:
                yield markdown(member.doc, link)


def _written(entry: Entry) -> Iterator[str]:
    if entry.signatures:
        yield "\n".join(["```python", *entry.signatures, "```"])


def _values(values: Sequence[Entry], link: Callable[[str], str]) -> Iterator[str]:
    for value in values:
        doc = " ".join(markdown(value.doc.partition("Raises:")[0], link).split())
        told = [f"Raises {', '.join(map(link, names))}: {text}" for names, text in raises(value.doc)]
        yield wrapped(" ".join([f"- `{value.signatures[0]}`: {doc}", *told]), "  ")


def _block(kind: type) -> str:
    """Whether it is for `with`."""
    ways = [way for way, verb in (("with", "__enter__"), ("async with", "__aenter__")) if hasattr(kind, verb)]
    return f"For {' and '.join(f'`{way}`' for way in ways)}." if ways else ""


def index() -> str:
    """All public names on one page."""
    parts = [
        "# Reference",
        HEAD,
        "Every public name, by the package it is imported from; a test imports them all. Errors: [errors](errors.md).",
        "## What every verb may raise",
        markdown(COMMON, link_from("index")),
    ]
    for page in PAGES:
        parts.append(f"## [{page.package}]({page.name}.md)")
        for package, told in _by_package(page).items():
            parts += [] if package == page.package else [f"{_from(package)}:"]
            parts.append("\n".join(_table(told, f"{page.name}.md")))
        if not entries(page):
            parts.append(first_sentence(_told(page)[0]))
    return "\n\n".join(parts) + "\n"


# --- errors ---------------------------------------------------------------------------------------------


def error_anchor(kind: type[FencerowError]) -> str:
    return slug(f"{kind.code} {kind.__name__}")


def errors_page() -> str:
    """What each error is, what to do about it, and which verbs say that they raise it."""
    parts = [
        "# fencerow.errors",
        HEAD,
        "Each paragraph is that of [errors](../errors.md). All names: [index](index.md).",
        markdown(inspect.cleandoc(FencerowError.__doc__ or ""), link_from("errors")),
        "\n".join(_error_table()),
    ]
    raisers = _raisers()
    for kind in kinds():
        parts += [f"## {kind.code} {kind.__name__}", "\n".join(_error_facts(kind, raisers)), _paragraph(kind)]
    return "\n\n".join(parts) + "\n"


def _error_table() -> Iterator[str]:
    yield "| code | error | exit code | again? | what it is |"
    yield "|---|---|---|---|---|"
    for kind in kinds():
        named = f"[`{kind.__name__}`](#{error_anchor(kind)})"
        yield f"| {kind.code} | {named} | {kind.exit_code} | {kind.repeat} | {first_sentence(kind.__doc__ or '')} |"


def _error_facts(kind: type[FencerowError], raisers: Mapping[str, list[str]]) -> Iterator[str]:
    link = link_from("errors")
    above = [base for base in kind.__mro__[1:] if base not in (Exception, BaseException, OSError, object)]
    based = ", ".join(
        link(base.__name__) if issubclass(base, FencerowError) else f"`{base.__name__}`" for base in above
    )
    yield f"- Exit code of a command that meets it: {kind.exit_code}"
    yield f"- The very same call again: {AGAIN[kind.repeat]}"
    if based:
        yield wrapped(f"- It is a {based}", "  ")
    if kind.__name__ in raisers:
        yield wrapped(f"- Raised by {', '.join(link(name) for name in raisers[kind.__name__])}", "  ")


def _paragraph(kind: type[FencerowError]) -> str:
    told = (ROOT / "docs" / "errors.md").read_text("utf-8")
    found = re.search(rf"^### {kind.code} {kind.__name__}\n(.+?)(?=\n\n#|\Z)", told, re.MULTILINE | re.DOTALL)
    text = found[1].strip() if found else inspect.cleandoc(kind.__doc__ or "")
    return "\n\n".join(wrapped(re.sub(r"\]\((?=[\w#])", "](../", part)) for part in text.split("\n\n"))


@cache
def _raisers() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for entry in entries(page):
            for each in (entry, *entry.members):
                for names, _ in raises(each.doc):
                    for name in names:
                        if each.name not in found.setdefault(name, []):
                            found[name].append(each.name)
    return found


def write(folder: Path = FOLDER) -> None:
    """Make the pages anew; one that is made no more goes."""
    folder.mkdir(exist_ok=True)
    made = pages()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {FOLDER.relative_to(ROOT)}\n")
