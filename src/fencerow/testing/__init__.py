"""Tools for testing against real databases: what Fencerow is tested with is what it ships."""
