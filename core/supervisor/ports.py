"""Free TCP ports where trainers listen, held until the trainers start. Quick; no name is looked up."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterable
from itertools import chain

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Task

_TRIES = 200


class HeldPorts:
    """Ports by task name, each listened on until ``release``: no other node here chooses it too."""

    def __init__(self) -> None:
        self._sockets: dict[str, socket.socket] = {}

    @property
    def ports(self) -> dict[str, int]:
        return {task: held.getsockname()[1] for task, held in self._sockets.items()}

    def hold(self, task: str, port: int) -> bool:
        """False where something else has the port. TensorFlow listens on every address, and so does this."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if os.name == "posix":
                # Ports of connections that ended a moment ago are free for a listener.
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
        """Just before the trainers start, or when the run does not come to that."""
        for held in self._sockets.values():
            held.close()
        self._sockets.clear()


def hold_ports(tasks: Iterable[Task], *, chance: random.Random | None = None) -> HeldPorts:
    """The port that the plan asks for where it is free, else any between 20000 and 32000.

    Raises ``TandemError`` where hundreds of them are taken.
    """
    held, draw = HeldPorts(), chance or random.Random()
    for task in tasks:
        wanted = [task.port] if FIRST_PORT <= task.port < LAST_PORT else []
        others = (draw.randrange(FIRST_PORT, LAST_PORT) for _ in range(_TRIES))
        if not any(held.hold(task.name, port) for port in chain(wanted, others)):
            held.release()
            raise TandemError(
                code="no-free-port",
                what=f"No TCP port between {FIRST_PORT} and {LAST_PORT} is free on this laptop.",
                fix="End the programs that listen there, and train again.",
            )
    return held
