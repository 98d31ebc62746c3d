"""The tables of the shop, the sessions on them, and the states of an order."""

from __future__ import annotations

import os

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fencerow import App, Backoff, Defaults
from fencerow.guards.transitions import Move, Transitions

URL = os.environ.get("FENCEROW_URL", "sqlite:///orders.db")
DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}
WAITS = {
    "sqlite": {"timeout": 30},
    "postgresql": {"connect_timeout": 10},
}  # seconds for the file's lock, or the server

# The jobs lie in the same database as the orders: that is what lets both be written in one commit.
app = App(URL, defaults=Defaults(attempts_max=10, backoff=Backoff(base_s=0.5, cap_s=30)))

_scheme, _place = URL.split(":", 1)
engine = create_async_engine(
    f"{DRIVERS[_scheme]}:{_place}",
    connect_args=WAITS[_scheme],
    pool_size=20,  # each running handler holds one connection: at least as many as a worker has slots
)
make_session = async_sessionmaker(engine, expire_on_commit=False)

STATES = (
    "placed",
    "reserved",
    "authorised",
    "captured",
    "packed",
    "shipped",
    "sold_out",
    "declined",
    "refunded",
)

# Each move is one UPDATE that names the state it may start from: of two that try, one gets the row.
order_moves = Transitions(
    app,
    table="orders",
    column="state",
    states=STATES,
    moves=[
        Move("reserve", "placed", "reserved"),
        Move("sell_out", "placed", "sold_out"),
        Move("authorise", "reserved", "authorised", sets="payment"),
        Move("decline", "reserved", "declined"),
        Move("capture", "authorised", "captured"),
        Move("pack", "captured", "packed"),
        Move("ship", "packed", "shipped", sets=("parcel", "shipped_on")),
        Move("refund", "shipped", "refunded"),
    ],
)


class Base(DeclarativeBase):
    pass


class Item(Base):
    """What the shop sells, and how much of it lies on the shelf."""

    __tablename__ = "items"
    __table_args__ = (CheckConstraint("on_shelf >= 0"),)
    sku: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]
    delivered: Mapped[int]
    on_shelf: Mapped[int]


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = (CheckConstraint(f"state IN {STATES}"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    sku: Mapped[str] = mapped_column(ForeignKey("items.sku"))
    quantity: Mapped[int]
    cents: Mapped[int]
    email: Mapped[str]
    state: Mapped[str] = mapped_column(default="placed")
    payment: Mapped[str | None]  # how the payment provider calls it
    parcel: Mapped[str | None]
    shipped_on: Mapped[str | None]  # the day


class Invoice(Base):
    __tablename__ = "invoices"
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.id"), primary_key=True)
    cents: Mapped[int]


class StockCount(Base):
    """What one count found on a shelf, and how much more there should have been."""

    __tablename__ = "stock_counts"
    count: Mapped[str] = mapped_column(primary_key=True)  # the id of its job
    sku: Mapped[str] = mapped_column(ForeignKey("items.sku"), primary_key=True)
    on_shelf: Mapped[int]
    missing: Mapped[int]


class Report(Base):
    """What left the shop on a day."""

    __tablename__ = "reports"
    day: Mapped[str] = mapped_column(primary_key=True)
    shipped: Mapped[int]
    cents: Mapped[int]


class Sales(Base):
    """A projection: only the consumer of `order.shipped` writes it, from the events alone."""

    __tablename__ = "sales"
    sku: Mapped[str] = mapped_column(primary_key=True)
    orders: Mapped[int]
    quantity: Mapped[int]
    cents: Mapped[int]
