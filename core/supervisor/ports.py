"""TCP ports for trainers: finds free ones, holds them until the trainers start, and listens; tries those of
trainers that did not meet."""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.net.address import Address, parse
from core.supervisor.state import Answer
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Task

_TRIES = 200


class HeldPorts:
    """Ports by task name, each listened on until ``release``, so that no other node here chooses it."""

    def __init__(self) -> None:
        self._sockets: dict[str, socket.socket] = {}

    @property
    def ports(self) -> dict[str, int]:
        return {task: held.getsockname()[1] for task, held in self._sockets.items()}

    def hold(self, task: str, port: int) -> bool:
        """False where the port is taken. Listens on every address, as TensorFlow does."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                # Ports of recently closed connections are free for a listener.
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            else:
                held.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", 0), 1)
            held.bind(("0.0.0.0", port))
            held.listen(1)
        except OSError:
            held.close()
            return False
        self._sockets[task] = held
        return True

    def release(self) -> None:
        """Call just before the trainers start, or when the run ends before that."""
        for held in self._sockets.values():
            held.close()
        self._sockets.clear()


def hold_ports(tasks: Iterable[Task], *, chance: random.Random | None = None) -> HeldPorts:
    """Hold each task's planned port if it is free, otherwise any from 20000 to 32000.

    Raises ``TandemError`` where hundreds of them are taken.
    """
    held, chance = HeldPorts(), chance or random.Random()
    for task in tasks:
        wanted = [task.port] if FIRST_PORT <= task.port < LAST_PORT else []
        if not any(held.hold(task.name, port) for port in chain(wanted, _drawn(chance))):
            held.release()
            raise _none_free()
    return held


def listen_at(at: Address) -> socket.socket:
    """Listen as a trainer that meets the others over TLS does. Raises ``OSError``, such as for a taken
    port."""
    family, _, _, _, where = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)[0]
    try:
        return socket.create_server(where, family=family)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
    # The others reach this laptop at an address that is not its own, for example a router's.
    return socket.create_server(("", at.port), family=family)


def listen_anywhere(host: str, drawn: Iterable[int] | None = None) -> socket.socket:
    """Listen at any port that a trainer of this laptop could get. Raises ``TandemError``, ``OSError``."""
    for port in drawn or _drawn(random.Random()):
        try:
            return listen_at(Address(host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise _none_free()


def _drawn(chance: random.Random) -> Iterator[int]:
    return (chance.randrange(FIRST_PORT, LAST_PORT) for _ in range(_TRIES))


def _none_free() -> TandemError:
    return TandemError(
        code="no-free-port",
        what=f"No TCP port between {FIRST_PORT} and {LAST_PORT} is free on this laptop.",
        fix="End the programs that use these ports, and train again.",
    )


def try_peers(peers: Mapping[str, str], limit_s: float) -> dict[str, Answer]:
    """Results by task name. ``peers``: ``device name at host:port``. Tries all at once, each for ``limit_s``
    at most. Blocks."""
    with ThreadPoolExecutor(max(1, len(peers)), thread_name_prefix="port-probe") as threads:
        return dict(zip(peers, threads.map(partial(_try, limit_s), peers.values()), strict=True))


def _try(limit_s: float, peer: str) -> Answer:
    try:
        address = parse(place(peer), 0)
        socket.create_connection((address.host, address.port), limit_s).close()
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "silent"
    except (OSError, TandemError):
        return "unreachable"
    return "answers"


def place(peer: str) -> str:
    """``host:port`` out of ``device name at host:port``."""
    return peer.rpartition(" at ")[2]
