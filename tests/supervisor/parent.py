"""A supervisor in a process of its own, which dies with the test.

Arguments: how many, the folder of its members, its patience as JSON, the process id of the test.
"""

import ctypes
import json
import logging
import os
import signal
import sys
from pathlib import Path

from fencerow.core.errors import FencerowError
from fencerow.supervisor.restarts import Patience, Restarts
from fencerow.supervisor.supervisor import Supervisor

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
MEMBER = Path(__file__).with_name("member.py")


def main(count: int, folder: str, patience: dict[str, float]) -> int:
    logging.basicConfig(level="INFO", format="%(message)s")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # as the first process of a container is
    supervisor = Supervisor(
        count,
        lambda number, fd: [sys.executable, "-I", "-S", str(MEMBER), folder, f"{number}:{fd}"],
        os.environ,
        restarts=Restarts(Patience(**patience)),  # type: ignore[arg-type]
    )
    try:
        return supervisor.run()
    except FencerowError as error:
        sys.stderr.write("\n".join(error.lines()))
        return error.exit_code


if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # its members see that, and leave
        if os.getppid() != int(sys.argv[4]):
            sys.exit("the test that wanted this supervisor is gone")
    sys.exit(main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])))
