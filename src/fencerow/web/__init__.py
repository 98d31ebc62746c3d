"""The front door: what reaches Fencerow over HTTP, who may pass, and what is told to others.

Extra `fencerow[web]`. Whoever does not use it loads nothing of it.

The guide: docs/guide/tokens.md.
"""
