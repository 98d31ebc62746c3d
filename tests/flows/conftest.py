"""The shop of the flows."""

from tests.flows.stage import shop as shop
