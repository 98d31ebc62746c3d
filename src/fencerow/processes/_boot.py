"""Become a child process of a worker, and the warden that sees to its end. Run as a script in a fresh interpreter.

Arguments: the numbers of two sockets, the child's connection and the warden's control. The process forks before
anything else is imported. The parent stays as it is: it takes in what the child has started and left (Linux), and kills
all of it when the child is over, when the worker wants it, and when the worker is gone. It then tells how the child
ended, and ends too.

The user's code runs in the child alone. Everything that must hold before it is imported happens here, with the standard
library alone.
"""

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
WORKER_DIED = signal.SIGUSR1
END_S = 5.0  # what another user's rights or a broken disk keep alive is left to the system
LOOK_S = 0.005


def main(connection: int, control: int) -> None:
    warden = os.getpid()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(
        PR_SET_PDEATHSIG, WORKER_DIED
    )  # the control says so too, unless a fork of the worker holds it open
    child = os.fork()
    if child:
        os.close(connection)
        watch_over(child, inherited(control))
    else:
        os.close(control)
        become(inherited(connection), warden)


def inherited(number: int) -> socket.socket:
    """A socket that waits for as long as it takes, whatever time-out this interpreter gives to new ones."""
    made = socket.socket(fileno=number)
    made.setblocking(True)
    return made


# --- the warden -----------------------------------------------------------------------------------


def watch_over(child: int, control: socket.socket) -> None:
    """Wait for the end of the child or for the order to end it, and let nothing of it live on."""
    awake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # Their numbers are read from `awake`. A service manager may tell all processes to end: the worker decides when.
    for each in (signal.SIGCHLD, WORKER_DIED, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, _nothing)
    watched = select.poll()
    watched.register(control, select.POLLIN)
    watched.register(awake, select.POLLIN)
    codes: dict[int, int] = {}
    wanted = True
    while wanted and reap(codes) and child not in codes:
        for number, _ in watched.poll():
            # Whatever comes by the control is the order, or the end of the worker.
            if number != awake or WORKER_DIED in os.read(awake, 4096):
                wanted = False
    end_all(child, codes)
    try:
        control.sendall(struct.pack("!i", codes.get(child, -signal.SIGKILL)))
    except OSError:
        pass  # nobody is there to be told


def end_all(child: int, codes: dict[int, int]) -> None:
    """Kill whatever is below this process, until nothing is.

    What a killed process forks meanwhile comes to this one, and is met in the next round.
    """
    deadline = time.monotonic() + END_S
    if sys.platform != "linux":
        _kill_group(child)
    while reap(codes) and time.monotonic() < deadline:
        for pid, group in below():
            # A group dies at once, a fork under way included. All of them were made below this process.
            if group != os.getpgrp():
                _kill_group(group)
            else:
                _kill(pid)
        time.sleep(LOOK_S)


def reap(codes: dict[int, int]) -> bool:
    """Note how those have ended that have; returns whether any are left, at whatever depth."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        codes[pid] = os.waitstatus_to_exitcode(status)


def below() -> list[tuple[int, int]]:
    """Each process that descends from this one, parents first, with its group; none where the system does not tell."""
    children: dict[int, list[tuple[int, int]]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib is memory that every warden would keep
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    found = list(children.get(os.getpid(), []))
    for pid, _ in found:
        found += children.get(pid, [])  # of which the loop goes on to take the children
    return found


# --- the child ----------------------------------------------------------------------------------------


def become(connection: socket.socket, warden: int) -> None:
    """Serve the worker, under the limits that it says first."""
    import json
    import resource

    os.setsid()  # what is sent to the group of a handler does not reach the warden
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The warden may have died before the line above; the signal would then never come.
    if os.getppid() != warden:
        sys.exit("the process that should end this one is gone")
    start = json.loads(received(connection, struct.unpack("!I", received(connection, 4))[0]))
    limit = start["memory_bytes_max"]
    if limit is not None:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        except (ValueError, OSError) as error:  # macOS knows the limit and does not take it
            sys.stderr.write(f"fencerow: this system sets no memory limit: {error}\n")
    sys.path[:] = start["path"]
    sys.argv[:] = start["argv"]

    from fencerow.processes.service import serve

    serve(connection, start)


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            sys.exit("the worker that wanted this process is gone")
        found += part
    return found


# --- both ---------------------------------------------------------------------------------------------


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended, or belongs to another user now


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass  # all of it has ended


def _nothing(_number: int, _frame: object) -> None:
    """Being woken is enough."""


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
