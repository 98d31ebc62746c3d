"""The version of this package, where every floor may read it."""

__version__ = "0.1.0.dev0"
