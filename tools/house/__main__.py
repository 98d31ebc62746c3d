"""Prints each thing that is wrong, one a line: the file, and what to do. Exits with 1 if there is any."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from tools.house import errors, links, numbers, pages, reference, strangers

Check = Callable[[], Iterator[str]]
CHECKS: tuple[Check, ...] = (
    pages.faults,
    reference.faults,
    errors.faults,
    numbers.faults,
    links.faults,
    strangers.faults,
)


def main(checks: Sequence[Check] = CHECKS) -> int:
    found = [fault for check in checks for fault in check()]
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
