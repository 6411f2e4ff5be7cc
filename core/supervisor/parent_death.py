"""Ends a trainer when its node is gone, however the node ended: no orphan is left, not even by ``kill -9``.

The node holds the only write end of a pipe; the trainer the read end. When the node ends, the kernel closes
the write end. Linux: the trainer asks beforehand for SIGKILL to its whole process group on that event
(O_ASYNC with F_SETSIG), which needs no Python to run: TensorFlow holds the interpreter's lock for minutes
while it waits for peers. PR_SET_PDEATHSIG would not do: it fires when the forking *thread* ends.
Elsewhere (macOS, Windows): a thread of the trainer reads the pipe; it acts once the interpreter's lock is
free. On Windows the system ends the trainer before that, with its job (`job_object`). A process that the
script moved to another session (``setsid``) is out of reach on both.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

if sys.platform == "linux":
    import fcntl


def arm(fd: int) -> None:
    """Called by the trainer before anything else: ``fd`` is the read end. Ends the process if the node is
    gone."""
    if sys.platform == "linux":
        leader = os.getpgrp() == os.getpid()
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpid() if leader else os.getpid())
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if poll.poll(0):  # The node ended before the pipe was armed.
            end_group()
    else:
        threading.Thread(target=_wait_gone, args=(fd,), name="leash", daemon=True).start()


def _wait_gone(fd: int) -> None:
    os.read(fd, 1)
    end_group()


def end_group() -> None:
    """Ends this process and, where it leads its group, all processes that it started."""
    if sys.platform == "win32":
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def watch_death(pid: int) -> int:
    """A descriptor that becomes readable once the child ``pid`` is dead, without fetching its status.

    The dead leader reserves its group's number until the rest of the group is ended. Not for Windows, which
    has no such descriptor (`pumps.death_of`).
    """
    fd = -1
    if sys.platform == "linux":
        fd = os.pidfd_open(pid)
    elif sys.platform == "darwin":
        queue = select.kqueue()
        ended = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        queue.control([ended], 0)
        fd = os.dup(queue.fileno())
        queue.close()
    return fd
