"""A private directory for one server: short enough for a socket, owned by who runs it, never left behind."""

import fcntl
import os
import pwd
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PREFIX = "fencerow-pg-"
# In both, a fresh directory with a random name and mode 0700 is made.
MEMORY = Path("/dev/shm")  # noqa: S108
FALLBACK = Path("/tmp")  # noqa: S108
SOCKET_PATH_BYTES_MAX = 103  # macOS; Linux takes four more
SOCKET_NAME = "/.s.PGSQL.65535.lock"
SWEEP_AFTER_S = 60


@dataclass(frozen=True)
class Account:
    """Who runs the server. -1 is whoever we are; PostgreSQL refuses to run as root."""

    uid: int = -1
    gid: int = -1

    @property
    def is_other(self) -> bool:
        return self.uid != -1

    @classmethod
    def unprivileged(cls) -> "Account":
        if os.geteuid() != 0:
            return cls()
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)


class Home:
    """The directory, and the lock that says its owner lives."""

    def __init__(self, account: Account, fast: bool, parent: Path | None = None) -> None:
        parent = _parent(fast) if parent is None else parent.absolute()
        sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = (self.path / "owner.lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.chown(self.path, account.uid, account.gid)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep(parent: Path, prefix: str = PREFIX) -> None:
    """Remove directories whose owner was killed before it could: memory is not given back by itself."""
    for path in parent.glob(f"{prefix}*"):
        try:
            # A directory that is being made has no lock yet; a minute is enough to take one.
            if time.time() - path.stat().st_mtime < SWEEP_AFTER_S:
                continue
            with (path / "owner.lock").open("r+") as lock:
                if _owner_is_gone(lock):
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # someone else's directory, or already swept by another


def _owner_is_gone(lock: IO[str]) -> bool:
    # The kernel drops the lock with the process that held it, however that process died.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_usable(parent: Path) -> bool:
    """Whether a server's directory may lie there: its socket's path has a limit, and its account must get there."""
    longest = len(os.fsencode(parent.absolute())) + len(f"/{PREFIX}12345678{SOCKET_NAME}")
    return longest <= SOCKET_PATH_BYTES_MAX and _is_open(parent.absolute())


def _parent(fast: bool) -> Path:
    if fast and os.access(MEMORY, os.W_OK):
        return MEMORY
    temporary = Path(tempfile.gettempdir()).resolve()
    return temporary if is_usable(temporary) else FALLBACK


def _is_open(path: Path) -> bool:
    """Whether the server's account, which as root is not ours, can get there."""
    return os.geteuid() != 0 or all(folder.stat().st_mode & stat.S_IXOTH for folder in [path, *path.parents])
