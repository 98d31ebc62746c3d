"""A TCP port for a server of our own, which nobody takes while that is not running."""

import secrets
import socket

# Below those from which systems take a port for an outgoing connection: Linux from 32768 on, others from 49152 on.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now.

    It may be taken later, and again after a stop: no outgoing connection gets it meanwhile.
    """
    for port in secrets.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(
        f"no port from {PORTS.start} to {PORTS.stop - 1} of 127.0.0.1 is free; end what listens there"
    )
