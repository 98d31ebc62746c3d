"""Prints docs/settings.md from Config: python3 tools/settings.py > docs/settings.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from fencerow import Config
from fencerow.core.config import PREFIX, Setting, settings

HEAD = """# Settings

Every setting is a field of `Config` and has an environment variable: `FENCEROW_` and its name in capitals. A name
ends with its unit: `_s` seconds, `_bytes` bytes.

- An empty variable counts as not set.
- A variable whose name is nearly that of a setting is an error, because a misspelled setting must not be ignored. Any
  other unknown `FENCEROW_` variable is a warning in the log.
- Variables that Kubernetes puts into each container for a service named `fencerow` or `fencerow-…` (`FENCEROW_PORT`,
  `FENCEROW_SERVICE_HOST` and so on) are ignored.
- `FENCEROW_CLI_…` sets options of the command: [cli.md](cli.md#variables).

`tools/settings.py` prints this page from `Config`; `dev.py check` compares them. The core's settings come
first (`src/fencerow/core/config/config.py`), then those of each wing (`settings.py` in its folder).

| setting | variable | default | values | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"{line}\n" for line in lines())


def lines() -> Iterator[str]:
    for setting in settings(Config):
        secret = " Never shown." if setting.secret else ""
        yield (
            f"| `{setting.name}` | `{setting.environment_name}` | {default(setting)} | {values(setting)} "
            f"| {setting.doc}{secret} |"
        )


def default(setting: Setting) -> str:
    return "–" if setting.default is None else f"`{plain(setting.default)}`"


def values(setting: Setting) -> str:
    if setting.is_number:
        return f"{plain(setting.low)} to {plain(setting.high)}"
    return ", ".join(f"`{choice}`" for choice in setting.choices) or "text"


def plain(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


assert PREFIX == "FENCEROW_", "the page spells it out"

if __name__ == "__main__":
    sys.stdout.write(page())
