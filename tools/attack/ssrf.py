"""Webhooks that are led to private addresses, in a network of their own where every address is a trap:
`python -m tools.attack.ssrf [--save FILE]`, as root.

In a namespace of the network whose every address is this machine's, a connection to any of them is caught, and told by
the address that was dialled. So it is seen that none is made, not only that nobody answers. It leaves this machine
nowhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fencerow.web.webhooks.addresses import Allowed
from fencerow.web.webhooks.errors import FailedBy, PostFailed
from fencerow.web.webhooks.posting import post
from fencerow.web.webhooks.resolving import Resolve, by_system
from tests.proof.storm.evidence import surroundings
from tests.web.gateway.certificates import made
from tests.web.webhooks.places import FORBIDDEN_V4, FORBIDDEN_V6, PUBLIC, answers, urls

PORT = 8443
TIMEOUT_S = 20.0
# All of IPv4 and IPv6 is at home here.
MADE = (
    "ip link set lo up",
    "ip route add local 0.0.0.0/1 dev lo",
    "ip route add local 128.0.0.0/1 dev lo",
    "ip -6 route add local ::/1 dev lo",
    "ip -6 route add local 8000::/1 dev lo",
)


class Trap:
    """Every address of the network, at one port; it hangs up on whoever comes, and counts by what they dialled."""

    def __init__(self) -> None:
        self.caught: Counter[str] = Counter()

    async def serve(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._note(writer)
        writer.close()

    async def redirect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The same for a receiver that is public, and leads on to a private one."""
        self._note(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 x\r\nLocation: https://10.0.0.1:8443/\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    def _note(self, writer: asyncio.StreamWriter) -> None:
        self.caught[writer.get_extra_info("sockname")[0].removeprefix("::ffff:")] += 1


async def led(url: str, resolve: Resolve = by_system, tls: ssl.SSLContext | None = None) -> FailedBy | int:
    """What becomes of a webhook that goes there: why it failed, or the status that was answered."""
    try:
        reply = await post(url, b"{}", {}, timeout_s=TIMEOUT_S, allow=Allowed(), resolve=resolve, tls=tls)
    except PostFailed as failed:
        return failed.kind
    return reply.status


def _saying(*looks: Sequence[str]) -> Resolve:
    """A resolver that says these, one look after the other, and the last one again and again."""
    left = list(looks)
    return lambda _host, _port: left.pop(0) if len(left) > 1 else left[0]


def _names() -> Iterator[Resolve]:
    """Of a name: what is private from the start, and what becomes so once it was checked."""
    yield from (_saying(answer) for answer in answers())
    yield from (_saying([PUBLIC], [address]) for address in (*FORBIDDEN_V4, *FORBIDDEN_V6))


async def played() -> dict[str, Any]:
    """Lead them everywhere, then see that the trap catches whom nobody checks."""
    trap = Trap()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pair = made(folder, "hooks.test")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.cert, pair.key)
        await asyncio.start_server(trap.serve, sock=_everywhere(PORT))
        await asyncio.start_server(trap.redirect, sock=_everywhere(443), ssl=context)
        given = [await led(url) for url in urls(PORT)]
        named = [await led(f"https://hooks.test:{PORT}/", resolve) for resolve in _names()]
        went, trap.caught = trap.caught, Counter()
        trusting = ssl.create_default_context(cafile=str(pair.cert))
        redirected = await led("https://hooks.test/", _saying([PUBLIC]), trusting)
        led_on, trap.caught = trap.caught, Counter()
        control = await _unchecked(trap)
    private = {name: count for name, count in (went + led_on).items() if name != PUBLIC}
    return {
        "stands": not private and redirected == 307 and control["caught"] == control["dialled"],
        "cases": {"urls": len(given), "names": len(named), "redirects": 1},
        "ended_by": dict(sorted(Counter(str(each) for each in (*given, *named, redirected)).items())),
        "connections_to_private_addresses": private,
        "connections_to_the_public_address": (went + led_on)[PUBLIC],
        "control_without_the_check": control,
    }


async def _unchecked(trap: Trap) -> dict[str, Any]:
    """What the trap catches where every address is permitted."""
    dialled = [each for each in (*FORBIDDEN_V4, *FORBIDDEN_V6) if _may_be_dialled(each)]
    checked, Allowed.permits = Allowed.permits, lambda *_: True  # type: ignore[method-assign]
    try:
        for address in dialled:
            await led(f"https://hooks.test:{PORT}/", _saying([address]))
    finally:
        Allowed.permits = checked  # type: ignore[method-assign]
    missed = [each for each in dialled if not trap.caught[each]]
    return {"dialled": len(dialled), "caught": len(dialled) - len(missed), "missed": missed}


def _may_be_dialled(address: str) -> bool:
    """Multicast, broadcast, no address at all, and those of a single link are connected to by no system."""
    return (
        not address.startswith(("0.", "22", "23", "24", "25", "ff", "fe8", "feb", "::ffff", "64:"))
        and address != "::"
    )


def _everywhere(port: int) -> socket.socket:
    found = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    found.setblocking(False)
    return found


def lacking() -> str | None:
    """Why it cannot be played here; None: it can."""
    if os.geteuid() != 0:
        return "it makes a namespace of the network, which only root may"
    absent = [each for each in ("unshare", "ip") if shutil.which(each) is None]
    return f"{', '.join(absent)} is not installed" if absent else None


def attacked() -> dict[str, Any]:
    """Play it in a process of its own, in a network of its own.

    Raises:
        RuntimeError: it could not be played.
    """
    done = subprocess.run(
        [str(shutil.which("unshare")), "--net", "--", sys.executable, "-m", "tools.attack.ssrf", "--inside"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: list[str]) -> int:
    """Play it, print what came of it, keep it; 1 if a connection was made."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack.ssrf", description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args(arguments)
    if given.inside:
        for each in MADE:
            subprocess.run(each.split(), check=True)
        print(json.dumps(asyncio.run(played())))
        return 0
    if why := lacking():
        print(f"not played: {why}")
        return 0
    found = {**surroundings([]), "command": ["python", "-m", "tools.attack.ssrf"], **attacked()}
    written = json.dumps(found, indent=1)
    print(written)
    if given.save:
        given.save.write_text(written + "\n")
    return 0 if found["stands"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
