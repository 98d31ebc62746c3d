"""Python reads this at its start where its folder is on PYTHONPATH: all event loops of the process are uvloop's."""

import asyncio
import warnings

import uvloop

with warnings.catch_warnings():  # of a Python that would have a loop named wherever one is made
    warnings.simplefilter("ignore", DeprecationWarning)
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
