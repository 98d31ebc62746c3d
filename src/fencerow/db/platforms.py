"""Where Fencerow runs: Linux and macOS. Importing this refuses anything else, before it could half work."""

from __future__ import annotations

import sys

from fencerow.db.errors import UnsupportedPlatform

REFUSED = {"win32": "Windows", "cygwin": "Cygwin", "emscripten": "a browser", "wasi": "WASI"}


def refuse_unsupported(platform: str) -> None:
    """Say no to a platform, named as `sys.platform` does, on which the promises would not hold.

    Raises:
        UnsupportedPlatform: use Linux or macOS; on Windows a container or WSL 2.
    """
    if platform in REFUSED:
        raise UnsupportedPlatform(
            f"Fencerow does not run on {REFUSED[platform]}",
            "it needs the locks, signals and child processes of POSIX, and is tested on Linux and macOS",
            "use Linux or macOS; on Windows a container or WSL 2 will do",
        )


refuse_unsupported(sys.platform)
