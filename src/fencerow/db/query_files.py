"""Files of named queries: `-- name: claim`, prose, then SQL. They lie in a folder for each dialect; what both dialects
say alike may lie in the folder `both` beside them.

What queries have in common is a fragment: `-- fragment: fence`, prose, then the text, once in any file of the folder.
`{{fence}}` stands for it in the queries; nothing of SQL looks like that, and no parameter does. It is written out when
the queries are loaded, without its comments, and with its further lines as far to the right as the line on which it
stands. So whoever reads the text of a query (a driver, an explorer, a test that cuts a guard out) reads all of it. A
fragment may stand on one that was defined before it. `{{given.job columns}}` stands for a fragment that lists columns,
each as `given` has it; `{{fields of given.job columns}}` for the same as names and values of a JSON object.

`-- at: when jobs have ended`, prose and text, is what a package brings to a point of another's queries. `Points`
collects what all bring, and writes it out for that package as one more fragment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from fencerow.db.errors import ConfigError

MARK = re.compile(r"^--\s*(name|fragment|at):\s*([a-z_ ]+?)\s*$", re.MULTILINE)
FRAGMENT = re.compile(r"\{\{(.*?)\}\}")
COLUMN = re.compile(r"[a-z_]+")
FIELDS = "fields of "
OWNED = re.compile(r"[a-z_]+\.([a-z_]+)")
# What is quoted is matched first, so that `--` inside of it is left alone.
COMMENT = re.compile(r"('(?:[^']|'')*'|\$\$.*?\$\$)|(?m:^[ \t]*--[^\n]*\n)|[ \t]*--[^\n]*", re.DOTALL)
BOTH = "both"
PARAMETER = re.compile(r"(?<![:\w]):[a-z_]+")
NOTHING: Mapping[str, str] = MappingProxyType({})


def texts(package: str, folder: str, given: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """The queries of a package folder by their names: prose and text, the fragments written out."""
    found = _found(package, folder)
    known = _expanded(found["fragment"], given)
    return {name: expanded(name, body, known) for name, body in found["name"].items()}


def fragments(package: str, folder: str, given: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """The fragments of a package folder by their names, without prose."""
    return _expanded(_found(package, folder)["fragment"], given)


def brought(package: str, folder: str, given: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """What a package brings to points of another's queries, by the points' names, without prose."""
    found = _found(package, folder)
    known = _expanded(found["fragment"], given)
    return {point: expanded(point, _without_prose(body), known) for point, body in found["at"].items()}


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a package's queries at which others have a say, by their kinds.

    At a list point each brings parts of the statement (on PostgreSQL named queries, `handed AS (...)`; on SQLite
    statements that end with a semicolon). At a condition point each brings one condition, and any of them is enough. At
    a value point each brings a value, and the first that is not NULL counts. At an item point each brings further items
    of a list that has others before. At a single point exactly one says something.
    What stands at a point takes no parameters, but for those that `parameters` allows there.
    """

    lists: Sequence[str] = ()
    conditions: Sequence[str] = ()
    values: Sequence[str] = ()
    items: Sequence[str] = ()
    singles: Sequence[str] = ()
    parameters: Mapping[str, AbstractSet[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.lists, *self.conditions, *self.values, *self.items, *self.singles)

    def filled(self, packages: Sequence[str], dialect: str) -> dict[str, str]:
        """What stands at each point: brought by these packages in their order, of which the first has the points.

        Raises:
            ConfigError: a file names a point that there is not, or says there what cannot stand there.
        """
        shared = fragments(packages[0], dialect, dict.fromkeys(self.names, ""))
        given: dict[str, list[str]] = {point: [] for point in self.names}
        for package in packages:
            for point, text in brought(package, dialect, shared).items():
                self._check(package, point, text)
                given[point].append(text.strip())
        return {point: self._joined(point, said, dialect) for point, said in given.items()}

    def _joined(self, point: str, said: Sequence[str], dialect: str) -> str:
        if point in self.conditions:
            return "".join(f" OR {text}" for text in said)
        if point in self.items:
            return "".join(f", {text}" for text in said)
        if point in self.singles:
            return _only(point, said)
        if point in self.values:
            return f"COALESCE({', '.join([*said, 'NULL', 'NULL'])})"
        if dialect == "postgres":
            return "".join(
                f",\n{text}" for text in said
            )  # behind the named queries that stand before the point
        return "\n".join(said)

    def _check(self, package: str, point: str, text: str) -> None:
        if point not in self.names:
            raise ConfigError(
                f"{package} brings something to {point!r}",
                f"the points are {', '.join(map(repr, self.names))}",
                "correct the line that begins with `-- at:`",
            )
        allowed = self.parameters.get(point, frozenset())
        used = set(PARAMETER.findall(re.sub(r"'(?:[^']|'')*'", "''", text))) - allowed
        if used:
            raise ConfigError(
                f"{package} uses the parameter {min(used)} at {point!r}",
                "statements of different parameters stand there",
                "read it from the rows of the point",
            )


def _only(point: str, said: Sequence[str]) -> str:
    if len(said) != 1:
        raise ConfigError(
            f"{len(said)} packages bring something to {point!r}",
            "a thing has one name, so exactly one may",
            "keep one of the lines that begin with `-- at:`",
        )
    return said[0]


def folder_of(package: str) -> Traversable:
    """Where the files of a package lie. It is not loaded: who reads its queries needs none of its code."""
    top, _, rest = package.partition(".")
    return files(top).joinpath(*rest.split(".")) if rest else files(top)


def _found(package: str, folder: str) -> dict[str, dict[str, str]]:
    """The parts of all files of a package folder and of `both` beside it: of each kind, by their names."""
    found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}, "at": {}}
    home = folder_of(package)
    entries = [*home.joinpath(folder).iterdir()]
    if (both := home.joinpath(BOTH)).is_dir():
        entries = [*both.iterdir(), *entries]  # first, beside one of the same name
    for file in sorted(entries, key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for kind, name, body in _parts(file.read_text("utf-8")):
                if name in found[kind]:
                    what = {"name": "query", "at": "part"}.get(kind, kind)
                    raise ConfigError(f"{what} {name!r} is defined twice in {folder}")
                found[kind][name] = body
    return found


def _expanded(bodies: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    known = dict(given)
    for name, body in bodies.items():
        known[name] = expanded(name, _without_prose(body), known)
    return known


def expanded(name: str, body: str, fragments: Mapping[str, str]) -> str:
    """The text of a query, or of a fragment, with each `{{fragment}}` written out.

    Raises:
        ConfigError: there is no such fragment. It is a mistake of ours, and no half statement may be sent.
    """

    def text(fragment: str) -> str:
        whose, dot, columns = fragment.removeprefix(FIELDS).partition(".")
        if dot and fragment.startswith(FIELDS):
            return OWNED.sub(r"'\g<1>', \g<0>", text(f"{whose}.{columns}"))
        if dot:
            return COLUMN.sub(rf"{whose}.\g<0>", text(columns))
        if fragment not in fragments:
            raise ConfigError(
                f"{name!r} stands on the fragment {fragment!r}, which does not exist",
                f"known so far: {', '.join(map(repr, sorted(fragments))) or 'none'}",
                "write `-- fragment: ` and its name above its text, in a file beside the query",
            )
        return fragments[fragment]

    def line(written: str) -> str:
        further = "\n" + written[: len(written) - len(written.lstrip())]
        return FRAGMENT.sub(lambda match: text(match[1]).replace("\n", further), written)

    if "{{" not in body:
        return body
    return "\n".join(each if each.startswith("--") else line(each) for each in body.split("\n"))


def parse(text: str) -> Iterable[tuple[str, str]]:
    """Split a file into (name, body) pairs; what stands before the first name is the file's prose."""
    return ((name, body) for kind, name, body in _parts(text) if kind == "name")


def _parts(text: str) -> Iterator[tuple[str, str, str]]:
    """The named parts of a file: of each its kind (`name`: a query, `at`: for a point), its name, and its body."""
    marks = list(MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):  # a file without any has an end all the same
        yield mark[1], mark[2], text[mark.end() : end]


def _without_prose(body: str) -> str:
    """What a fragment says, without prose and comments: one behind its last line would swallow what follows there."""
    return COMMENT.sub(lambda match: match[1] or "", body.strip("\n") + "\n").strip("\n")
