"""A supervisor in a process of its own. Arguments: how many, the folder of its members, its patience as JSON."""

import ctypes
import json
import logging
import os
import sys
from pathlib import Path

from fencerow.core.errors import FencerowError
from fencerow.supervisor.restarts import Patience, Restarts
from fencerow.supervisor.supervisor import Supervisor

PR_SET_CHILD_SUBREAPER = 36
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
    sys.exit(main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])))
