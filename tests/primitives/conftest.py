"""Every kind of connection that a user may lend."""

from tests.db.conftest import lender, lent_engine, loan  # noqa: F401 (fixtures are found here)
