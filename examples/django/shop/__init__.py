"""The shop: orders, and what happens to them."""
