"""Processes of tests that begin at once: forks of one that has imported what they need, without threads or connections.

A fresh interpreter that imports our modules takes half a second of a core. A fork is a real process all the same: it
may be killed, and nobody shares its connections.
"""

from __future__ import annotations

from multiprocessing import get_context

context = get_context("forkserver")
# All of them: one such server is all that a process of tests has, and who starts it first must not leave others' out.
context.set_forkserver_preload(
    ["tests.migrations.runner", "tests.proof.crash.dying", "tests.proof.storm.member"]
)
