"""The version, where every floor may read it and the build finds it."""

__version__ = "0.1.0.dev0"
