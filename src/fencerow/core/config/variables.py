"""Variables that begin with FENCEROW_ and are no setting: a slip of the pen, another program's, or Kubernetes' own."""

from __future__ import annotations

import difflib
import functools
import logging
import re
from collections.abc import Collection, Iterable, Mapping

from fencerow.core.config.setting import PREFIX, Setting
from fencerow.core.errors import ConfigError

log = logging.getLogger("fencerow.config")

# Variables that stand for options of the command, which knows their names and refuses others.
COMMAND_PREFIX = "FENCEROW_CLI_"
# Read by the command and the test tools, not by Config.
RESERVED_NAMES = frozenset({"FENCEROW_PG_BIN", "FENCEROW_PG_FROM", "FENCEROW_APP"})
# What other programs call a setting of ours.
ELSEWHERE = {"DATABASE_URL": "URL", "DB_URL": "URL", "DSN": "URL", "CONCURRENCY": "SLOTS"}
CLOSE = 0.6
# Into each container of a namespace Kubernetes puts these for every service there: for one named `fencerow` that is
# FENCEROW_PORT=tcp://10.0.0.1:80 and so on, for `fencerow-web` FENCEROW_WEB_PORT. See its page on services, under
# "Discovering services", environment variables.
# Names and values go together: FENCEROW_PORT=8080 is somebody's own, who believes in a setting of that name.
NUMBER, ADDRESS, LOCATION = r"[0-9]{1,5}", r"[0-9a-fA-F.:]+", r"(tcp|udp|sctp)://\S+"
OF_A_SERVICE = [
    (re.compile(name), re.compile(value))
    for name, value in (
        (r"SERVICE_HOST", ADDRESS),
        (r"SERVICE_PORT(_[A-Z0-9_]+)?", NUMBER),
        (r"PORT", LOCATION),
        (r"PORT_[0-9]+_(TCP|UDP|SCTP)", LOCATION),
        (r"PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO", r"(tcp|udp|sctp)"),
        (r"PORT_[0-9]+_(TCP|UDP|SCTP)_PORT", NUMBER),
        (r"PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR", ADDRESS),
    )
]


def is_injected(name: str, value: str) -> bool:
    """Whether Kubernetes would make this variable for a service whose name begins with `fencerow`."""
    words = name.removeprefix(PREFIX).split("_")
    rests = ["_".join(words[at:]) for at in range(len(words))]
    return any(
        of_name.fullmatch(rest) and of_value.fullmatch(value)
        for rest in rests
        for of_name, of_value in OF_A_SERVICE
    )


def refuse_unknown_variables(environ: Mapping[str, str], known: Iterable[Setting]) -> None:
    """A misspelled setting must not be passed over: ConfigError names the nearest. What else is unknown is warned of.

    Raises:
        ConfigError: a variable's name is nearly that of a setting.
    """
    names = {setting.environment_name for setting in known} | RESERVED_NAMES
    for name in sorted(environ):
        if name in names or not name.startswith(PREFIX) or name.startswith(COMMAND_PREFIX):
            continue
        if is_injected(name, environ[name]):
            _hint_once()
            continue
        close = _nearest(name, names)
        if close:
            # Its value is not shown: it may be a secret under a misspelled name.
            raise ConfigError(f"{_shown(name)} is no setting", "it has no effect", did_you_mean(close))
        _warn_once(_shown(name))


def did_you_mean(close: Collection[str]) -> str:
    """What to do about a name that is near to these."""
    return f"did you mean {' or '.join(close)}?"


def _nearest(name: str, names: Collection[str]) -> list[str]:
    """By what follows the prefix: that alone is what somebody may have misspelled."""
    own = name.removeprefix(PREFIX)
    if own in ELSEWHERE:
        return [PREFIX + ELSEWHERE[own]]
    rests = sorted(known.removeprefix(PREFIX) for known in names)
    return [PREFIX + rest for rest in difflib.get_close_matches(own, rests, n=3, cutoff=CLOSE)]


@functools.cache
def _hint_once() -> None:
    log.debug("variables that Kubernetes makes for services named fencerow… are no settings, and are ignored")


@functools.cache
def _warn_once(shown: str) -> None:
    """Settings are read by every command and every app of a process; one line is enough."""
    log.warning("the variable %s is no setting of Fencerow and has no effect", shown)


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:100]
