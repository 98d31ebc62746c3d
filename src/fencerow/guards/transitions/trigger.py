"""A trigger that refuses writes which go round the declared moves, with nothing but the old row and the new one.

It knows no session and no setting, so it holds behind a pooler and under every tool. What a move leaves behind is
enough to tell: the pair of states is legal; a fence never goes back, and rises by one exactly with a claim; and where
the table has a version, each change of a state or a fence raises that by one, which a write by hand forgets.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.guards.names import literal, quoted
from fencerow.guards.transitions.ddl import short
from fencerow.guards.transitions.machine import DeclaredTable, Machine

REFUSE = "fencerow_refuse_write"
POSTGRES = """\
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'check_violation',
        MESSAGE = format('a write to %s goes round its declared moves', TG_TABLE_NAME),
        DETAIL = format('%s: from %s to %s', TG_ARGV[0], to_jsonb(OLD) ->> TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]),
        HINT = 'make a declared move; its fence and version, if there are any, rise with it';
END $$;
CREATE OR REPLACE TRIGGER {trigger} BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (
    {violations}
) EXECUTE FUNCTION {function}({column});
"""
SQLITE = """\
DROP TRIGGER IF EXISTS {trigger};
CREATE TRIGGER {trigger} BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (
    {violations}
) BEGIN
    SELECT RAISE(ABORT, {message});
END;
"""


def trigger_sql(declared: DeclaredTable, dialect: str) -> str:
    """Statements that make the trigger, or replace it when the declaration has changed."""
    violations = "\n    OR ".join(f"({each})" for each in _Rows(declared, dialect).violations())
    name = short(f"fencerow_moves_of_{declared.table.name}")
    if dialect == "postgres":
        return POSTGRES.format(
            function=declared.table.beside(REFUSE),
            trigger=quoted(name),
            table=declared.table.quoted,
            violations=violations,
            column=literal(declared.main.column),
        )
    message = f"a write to {declared.table.name} goes round its declared moves"
    return SQLITE.format(
        trigger=declared.table.beside(name),
        table=quoted(declared.table.name),
        violations=violations,
        message=literal(message),
    )


class _Rows:
    """Conditions on OLD and NEW, in one dialect."""

    def __init__(self, declared: DeclaredTable, dialect: str) -> None:
        self._declared = declared
        self._differs, self._equals = (
            ("IS DISTINCT FROM", "IS NOT DISTINCT FROM") if dialect == "postgres" else ("IS NOT", "IS")
        )

    def violations(self) -> Iterator[str]:
        """What no move does."""
        for machine in self._declared.machines:
            legal = "\n        OR ".join(self._legal(machine))
            yield f"{self._changed(machine.column)} AND NOT (\n        {legal}\n    )"
        yield from self._fences()
        if self._declared.version is not None:
            yield self._unversioned(self._declared.version)

    def _legal(self, machine: Machine) -> Iterator[str]:
        within = ""
        if machine.within:
            states = ", ".join(literal(state) for state in machine.within)
            main = quoted(self._declared.main.column)
            within = f" AND OLD.{main} IN ({states}) AND NEW.{main} IN ({states})"
        pairs = [pair for move in machine.moves.values() for pair in machine.pairs(move)]
        for source, target in dict.fromkeys(pairs):
            yield f"{self._pair(machine, source, target)}{within}"
        yield from self._entered(machine)

    def _entered(self, machine: Machine) -> Iterator[str]:
        """A sub-state that a main move enters, whatever it was before."""
        main = self._declared.main
        for move in main.moves.values():
            if machine.name in move.enters:
                into = f"NEW.{quoted(machine.column)} {self._equals} {literal(move.enters[machine.name])}"
                for source, target in main.pairs(move):
                    yield f"{self._pair(main, source, target)} AND {into}"

    def _pair(self, machine: Machine, source: str | None, target: str | None) -> str:
        column = quoted(machine.column)
        return (
            f"OLD.{column} {self._equals} {literal(source)} AND NEW.{column} {self._equals} {literal(target)}"
        )

    def _fences(self) -> Iterator[str]:
        """A fence rises by one with a claim and never otherwise; a claim always raises it, and stamps its lease."""
        for column, claims in self._claims().items():
            fence = quoted(column)
            claimed = " OR ".join(
                f"NEW.{state} {self._equals} {literal(target)}" for state, target, _ in claims
            )
            raised = f"NEW.{fence} {self._equals} coalesce(OLD.{fence}, 0) + 1"
            yield f"{self._changed(column)} AND NOT ({raised} AND ({claimed}))"
            for state, target, lease_column in claims:
                entered = f"NEW.{state} {self._equals} {literal(target)} AND {self._changed(state)}"
                yield f"{entered} AND (NOT ({raised}) OR NEW.{lease_column} IS NULL)"

    def _claims(self) -> dict[str, list[tuple[str, str | None, str]]]:
        """By fence: the leased states with their columns. Claims may share a fence."""
        found: dict[str, list[tuple[str, str | None, str]]] = {}
        for machine in self._declared.machines:
            for state, lease in machine.leases.items():
                stamped = quoted(lease.since or lease.until or "")
                found.setdefault(lease.fence, []).append((quoted(machine.column), state, stamped))
        return found

    def _unversioned(self, version: str) -> str:
        watched = [each.column for each in self._declared.machines] + list(self._claims())
        changed = " OR ".join(self._changed(column) for column in dict.fromkeys(watched))
        column = quoted(version)
        raised = f"NEW.{column} {self._equals} coalesce(OLD.{column}, 0) + 1"
        return f"({changed} OR {self._changed(version)}) AND NOT ({raised})"

    def _changed(self, column: str) -> str:
        name = column if column.startswith('"') else quoted(column)
        return f"NEW.{name} {self._differs} OLD.{name}"
