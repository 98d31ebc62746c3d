"""The shop of the sagas."""

from tests.saga.stage import shop as shop
