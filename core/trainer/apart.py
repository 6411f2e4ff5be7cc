"""Starts a process in the trainer's group that is not its child: a script may wait for all its children."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable


def apart(work: Callable[[], None], *to_close: socket.socket) -> None:
    """Runs ``work`` in a process of its own. ``to_close``: sockets that it must not hold open."""
    if sys.platform != "win32":
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            return
        if os.fork():
            os._exit(0)
        try:
            # The trainer decides what Stop means; these processes end with it.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            for each in to_close:
                each.close()
            work()
        except BaseException:
            logging.getLogger(__name__).exception("the process beside a trainer failed")
        finally:
            os._exit(0)
