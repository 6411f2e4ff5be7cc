"""Seals a trainer: moves it into a network of its own, and leaves its relay outside as a separate process.
Call ``begin`` before any thread is started.

Another process inside creates sockets for the relay and watches it. Both processes are in the trainer's
group, but are not its children: a script may wait for those. If either ends unexpectedly, the trainer ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from core.trainer.apart import apart
from core.trainer.sealed import listeners, namespace, problems
from core.vocabulary.bounds import FewBy, Name, Words
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import Ended, Seal
from core.vocabulary.wire import from_json, to_json
from core.walls import enclosure

OPEN_S = 30.0
"""Time for the relay to load its modules, and to listen."""
SWITCH_S = 2e-4
"""As in a trainer (``core.trainer.tls_cluster``): switch interval of threads that encrypt."""
ENDING_S = 0.5
"""Processes that end with the trainer may end this much earlier."""
_READ = 65536


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the relay, as one line of JSON."""

    run: Name
    rank: int
    seal: Seal


class RelayReady(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's answer. ``environment``: variables by which programs inside find the proxy, if any."""

    environment: FewBy[Name, Words] = {}
    problem: Problem | None = None


class Sealed:
    """The trainer's side. ``refusal``: why the system gave it no network of its own, if so."""

    def __init__(self, control: socket.socket, refusal: OSError | None) -> None:
        self._control = control
        self._refusal = refusal

    def open(self, run: str, rank: int, seal: Seal) -> RelayReady:
        """Makes the relay listen. Call it before TensorFlow listens anywhere.

        Raises ``TandemError`` if the trainer is not sealed, a port is taken, or the keys do not fit.
        """
        if self._refusal is not None:
            raise TandemError.of(problems.not_sealed(self._refusal))
        self._control.settimeout(OPEN_S)
        opening = Opening(run=run, rank=rank, seal=seal)
        try:
            self._control.sendall(to_json(opening) + b"\n")
            answer = from_json(_read_line(self._control), RelayReady)
        except (OSError, msgspec.DecodeError) as error:
            raise TandemError.of(problems.relay_broke(error)) from error
        if answer.problem is not None:
            raise TandemError.of(answer.problem)
        return answer


def begin(report_fd: int) -> Sealed:
    """Call it in the trainer while it has one thread. The relay reports a broken seal on ``report_fd``."""
    control, relays = socket.socketpair()
    asking, giving = socket.socketpair()
    watching, watched = socket.socketpair()
    trainer = os.getpid()
    apart(lambda: _relay(relays, asking, watching, trainer, report_fd), control, giving, watched)
    for relays_end in (relays, asking, watching):
        relays_end.close()
    refusal = None
    try:
        if enclosure.threads() > 1:
            raise OSError(errno.EINVAL, "the process has several threads already")
        _try_to_enter()
        namespace.enter()
    except OSError as error:
        refusal = error
    apart(lambda: _give_and_watch(giving, trainer, report_fd), control)
    giving.close()
    watched.close()
    return Sealed(control, refusal)


def _try_to_enter() -> None:
    """Tries in a process that then exits: failing halfway would spoil this one. Raises ``OSError``."""
    if sys.platform != "win32":
        pid = os.fork()
        if pid:
            number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if number:
                raise OSError(number, os.strerror(number))
            return
        try:
            namespace.enter()
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
        except BaseException:
            os._exit(errno.EPERM)
        os._exit(0)


def _give_and_watch(giving: socket.socket, trainer: int, report_fd: int) -> None:
    """Runs in the process that makes sockets, until the relay has ended."""
    namespace.give_sockets(giving)
    _end_if_alone(trainer, report_fd)


def _end_if_alone(trainer: int, report_fd: int) -> None:
    """Ends the trainer, if it has not ended: part of its seal is gone, so it can no longer reach anyone."""
    time.sleep(ENDING_S)
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{trainer}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        if state not in "ZX":
            _end_trainer(problems.relay_ended(), report_fd)


def _relay(
    control: socket.socket, asking: socket.socket, watching: socket.socket, trainer: int, report_fd: int
) -> None:
    """Runs in the relay's process until the trainer has ended. ``watching`` closes with the socket maker."""
    try:
        line = _read_line(control)
    except OSError:  # The trainer ended before it opened the seal.
        return
    opening = from_json(line, Opening)

    def check() -> None:
        try:
            problem = _why_open(trainer)
        except (FileNotFoundError, ProcessLookupError):  # The trainer has ended, and reported why itself.
            os._exit(0)
        except OSError as error:
            problem = problems.not_sealed(error)
        if problem is not None:
            _end_trainer(problem, report_fd)

    sys.setswitchinterval(SWITCH_S)
    # Imported only here: the trainer itself does not need it.
    from core.trainer.sealed.relay import Relay

    try:
        relay = Relay(opening.run, opening.rank, opening.seal, namespace.socket_maker(asking), check)
        ready = RelayReady(environment=relay.start())
    except TandemError as error:
        ready = RelayReady(problem=error.problem)
    except OSError as error:
        ready = RelayReady(problem=problems.relay_broke(error))
    with contextlib.suppress(OSError):
        control.sendall(to_json(ready) + b"\n")
        select.select([control, watching], [], [])
        _end_if_alone(trainer, report_fd)


def _why_open(trainer: int) -> Problem | None:
    """Why others can reach the trainer. Security invariant: then nobody is connected to it."""
    if found := listeners.reachable(trainer):
        return problems.reachable(found)
    return None if namespace.is_apart(trainer) else problems.not_apart()


def _end_trainer(problem: Problem, report_fd: int) -> None:
    """Ends the trainer's whole process group, including this process."""
    ended = Ended(exit=Exit(reason="killed", problem=problem, shared=False))
    with contextlib.suppress(OSError):
        os.write(report_fd, to_json(ended) + b"\n")
    if sys.platform != "win32":
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _read_line(control: socket.socket) -> bytes:
    """Reads one line. Raises ``ConnectionError`` if the other end has gone."""
    line = b""
    while not line.endswith(b"\n"):
        got = control.recv(_READ)
        if not got:
            raise ConnectionError("the other end has gone")
        line += got
    return line
