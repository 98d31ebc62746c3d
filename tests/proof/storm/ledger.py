"""Tables of the storm in the database under test: the effects that jobs write, and every move of every job.

Moves are written by triggers, in the transaction that makes them: what a worker believes does not matter there.
"""

from __future__ import annotations

from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Rows
from fencerow.db.sqlite import SqliteEngine

POSTGRES = """
CREATE TABLE fencerow.effect (job text NOT NULL, attempt bigint NOT NULL, holder text);
CREATE TABLE fencerow.move (
    number bigint GENERATED ALWAYS AS IDENTITY, job uuid, state text, attempt bigint, holder uuid
);
CREATE FUNCTION fencerow.write_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fencerow.move (job, state, attempt, holder) VALUES (NEW.id, NEW.state, NEW.attempt, NEW.holder);
    RETURN NULL;
END $$;
CREATE FUNCTION fencerow.write_withdrawal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fencerow.move (job, state, attempt) VALUES (OLD.id, 'withdrawn', OLD.attempt);
    RETURN NULL;
END $$;
CREATE TRIGGER submitted AFTER INSERT ON fencerow.jobs FOR EACH ROW EXECUTE FUNCTION fencerow.write_move();
CREATE TRIGGER moved AFTER UPDATE ON fencerow.jobs FOR EACH ROW
    WHEN ((OLD.state, OLD.attempt, OLD.holder) IS DISTINCT FROM (NEW.state, NEW.attempt, NEW.holder))
    EXECUTE FUNCTION fencerow.write_move();
CREATE TRIGGER withdrawn AFTER DELETE ON fencerow.jobs
    FOR EACH ROW WHEN (OLD.state IN ('waiting', 'queued')) EXECUTE FUNCTION fencerow.write_withdrawal();
CREATE TRIGGER ended AFTER INSERT ON fencerow.finished_jobs
    FOR EACH ROW EXECUTE FUNCTION fencerow.write_move();
"""
SQLITE = """
CREATE TABLE fencerow_effect (job TEXT NOT NULL, attempt INTEGER NOT NULL, holder TEXT);
CREATE TABLE fencerow_move (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT, state TEXT, attempt INTEGER, holder TEXT
);
CREATE TRIGGER storm_submitted AFTER INSERT ON fencerow_jobs BEGIN
    INSERT INTO fencerow_move (job, state, attempt, holder) VALUES (NEW.id, NEW.state, NEW.attempt, NEW.holder); END;
CREATE TRIGGER storm_moved AFTER UPDATE ON fencerow_jobs
    WHEN (OLD.state, OLD.attempt, OLD.holder) IS NOT (NEW.state, NEW.attempt, NEW.holder) BEGIN
    INSERT INTO fencerow_move (job, state, attempt, holder) VALUES (NEW.id, NEW.state, NEW.attempt, NEW.holder); END;
CREATE TRIGGER storm_withdrawn AFTER DELETE ON fencerow_jobs WHEN OLD.state IN ('waiting', 'queued') BEGIN
    INSERT INTO fencerow_move (job, state, attempt) VALUES (OLD.id, 'withdrawn', OLD.attempt); END;
CREATE TRIGGER storm_ended AFTER INSERT ON fencerow_finished_jobs BEGIN
    INSERT INTO fencerow_move (job, state, attempt, holder) VALUES (NEW.id, NEW.state, NEW.attempt, NEW.holder); END;
"""

Engine = PostgresEngine | SqliteEngine


def prepare(engine: Engine) -> None:
    """Make the tables and triggers."""
    with engine.session() as session:
        if isinstance(engine, PostgresEngine):
            session.connection.execute(POSTGRES)
        else:
            for text in _statements(SQLITE):
                session.connection.execute(text)


def ask(engine: Engine, text: str) -> Rows:
    """Run one query; tables are written as on PostgreSQL."""
    if isinstance(engine, SqliteEngine):
        text = text.replace("fencerow.", "fencerow_")
    with engine.session() as session:
        return [tuple(row) for row in session.connection.execute(text).fetchall()]


def _statements(script: str) -> list[str]:
    """The statements of a script in which a line that ends in `;` ends one."""
    return script.strip().removesuffix(";").split(";\n")
