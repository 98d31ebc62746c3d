"""Become a PostgreSQL server that dies with whoever started it. Run as a script, never imported.

Arguments: uid, gid (-1 keeps the caller's), the starter's process id, then the command.
A script of its own rather than a `preexec_fn`: that one runs between fork and exec, where a lock held by
another thread of the starter stays locked for ever.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(uid: int, gid: int, starter: int, command: list[str]) -> None:
    if uid != -1:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    os.umask(0o077)
    if sys.platform == "linux":
        # After setuid, which clears it. SIGQUIT is PostgreSQL's immediate shutdown: its children go along.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)
        # The starter may have died before the line above; the signal would then never come.
        if os.getppid() != starter:
            sys.exit("the process that wanted this server is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
