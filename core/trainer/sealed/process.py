"""Seals a trainer, first of all: its network becomes one of its own, and its relay a process that is left
outside. Call ``begin`` before anything has started a thread.

Beside the relay stands who makes sockets for it and watches it. All are of the trainer's process group, but
no children of its: a script may wait for those. Where one of them ends by itself, the trainer is ended.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import structs

from core.net.address import parse
from core.trainer.sealed import listeners, loopback, namespace, problems
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import Ended, Seal
from core.vocabulary.wire import from_json, to_json

Way = Literal["namespace", "loopback"]
"""A network of the trainer's own; or, where the system forbids that, the laptop's loopback alone, which other
users of the laptop reach, too."""
OPEN_S = 30.0
"""For the relay to load what it needs, and to listen."""
SWITCH_S = 2e-4
"""As in a trainer (``core.trainer.tls_cluster``): threads that encrypt take turns so often."""
ENDING_S = 0.5
"""Who ends with the trainer may be a moment ahead of it."""
_READ = 65536


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What the relay is told, as one line of JSON."""

    run: str
    rank: int
    seal: Seal
    way: Way


class RelayReady(msgspec.Struct, frozen=True, kw_only=True):
    """What it answers. ``environment``: by which programs inside find the way out, where there is one."""

    environment: dict[str, str] = {}
    problem: Problem | None = None


class Sealed:
    """The trainer's side. ``refusal``: why the system gave it no network of its own."""

    def __init__(self, control: socket.socket, refusal: OSError | None) -> None:
        self._control = control
        self._refusal = refusal
        self.way: Way = "namespace" if refusal is None else "loopback"

    def open(self, run: str, rank: int, seal: Seal) -> RelayReady:
        """Have the relay listen; TensorFlow is loaded, and listens nowhere yet. Raises ``TandemError``: not
        sealed, a taken port, unfit keys."""
        if self._refusal is not None:
            self._stay_on_loopback(self._refusal, seal, rank)
        self._control.settimeout(OPEN_S)
        opening = Opening(run=run, rank=rank, seal=seal, way=self.way)
        try:
            self._control.sendall(to_json(opening) + b"\n")
            answer = from_json(_line(self._control), RelayReady)
        except (OSError, msgspec.DecodeError) as error:
            raise TandemError.of(problems.relay_broke(error)) from error
        if answer.problem is not None:
            raise TandemError.of(answer.problem)
        return answer

    def _stay_on_loopback(self, refusal: OSError, seal: Seal, rank: int) -> None:
        if not loopback.is_possible():
            raise TandemError.of(problems.not_sealed(refusal))
        if not seal.downloads:
            raise TandemError.of(problems.not_kept_in(refusal))
        try:
            places = loopback.listen_at(parse(seal.inside[rank]).host)
        except OSError as error:
            raise TandemError.of(problems.not_sealed(error)) from error
        if not places:
            raise TandemError.of(problems.not_sealed(refusal))


def begin(report_fd: int) -> Sealed:
    """In the trainer, while it has one thread. ``report_fd``: by which the relay says that a seal broke."""
    control, relays = socket.socketpair()
    asking, giving = socket.socketpair()
    watching, watched = socket.socketpair()
    trainer = os.getpid()
    _apart(lambda: _relay(relays, asking, watching, trainer, report_fd), control, giving, watched)
    for of_the_relay in (relays, asking, watching):
        of_the_relay.close()
    refusal = None
    try:
        _try_to_enter()
        namespace.enter()
    except OSError as error:
        refusal = error
    _apart(lambda: _give_and_watch(giving, trainer, report_fd), control)
    giving.close()
    watched.close()
    return Sealed(control, refusal)


def _try_to_enter() -> None:
    """In a process that ends with it: who fails halfway is left somewhere between. Raises ``OSError``."""
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


def _apart(work: Callable[[], None], *of_others: socket.socket) -> None:
    """Do it in a process of its own, which ends with it. ``of_others``: what it is not to hold open."""
    if sys.platform != "win32":
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            return
        if os.fork():
            os._exit(0)
        try:
            # The trainer decides what Stop means; these end with it.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            for each in of_others:
                each.close()
            work()
        except BaseException:
            logging.getLogger(__name__).exception("the seal's process broke")
        finally:
            os._exit(0)


def _give_and_watch(giving: socket.socket, trainer: int, report_fd: int) -> None:
    """In the process beside the relay, until that has ended."""
    namespace.give_sockets(giving)
    _end_if_alone(trainer, report_fd)


def _end_if_alone(trainer: int, report_fd: int) -> None:
    """A part of the seal is gone. Unless the trainer ended as well, nothing would reach it any more."""
    time.sleep(ENDING_S)
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{trainer}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        if state not in "ZX":
            _end_trainer(problems.relay_ended(), report_fd)


def _relay(
    control: socket.socket, asking: socket.socket, watching: socket.socket, trainer: int, report_fd: int
) -> None:
    """In the relay's process, until the trainer has ended. ``watching`` ends with who makes sockets."""
    try:
        line = _line(control)
    except OSError:  # the trainer ended before it had anything to do
        return
    opening = from_json(line, Opening)

    def check() -> None:
        try:
            problem = _why_open(trainer, opening.way)
        except (FileNotFoundError, ProcessLookupError):  # it has ended, and somebody else says why
            os._exit(0)
        except OSError as error:
            problem = problems.not_sealed(error)
        if problem is not None:
            _end_trainer(problem, report_fd)

    sys.setswitchinterval(SWITCH_S)
    # Loaded here: the trainer itself needs nothing of it.
    from core.trainer.sealed.relay import Relay

    apart = opening.way == "namespace"
    inside = namespace.taking(asking) if apart else socket.socket
    # On the laptop's own loopback the script has the laptop's network, too.
    seal = opening.seal if apart else structs.replace(opening.seal, downloads=False)
    try:
        relay = Relay(opening.run, opening.rank, seal, inside, check)
        ready = RelayReady(environment=relay.start())
    except TandemError as error:
        ready = RelayReady(problem=error.problem)
    except OSError as error:
        ready = RelayReady(problem=problems.relay_broke(error))
    with contextlib.suppress(OSError):
        control.sendall(to_json(ready) + b"\n")
        select.select([control, watching], [], [])
        _end_if_alone(trainer, report_fd)


def _why_open(trainer: int, way: Way) -> Problem | None:
    """Security invariant: nobody is joined with a trainer that others can reach."""
    if found := listeners.reachable(trainer):
        return problems.reachable(found)
    return None if way == "loopback" or namespace.is_apart(trainer) else problems.not_apart()


def _end_trainer(problem: Problem, report_fd: int) -> None:
    """With everything of it, this process included."""
    ended = Ended(exit=Exit(reason="killed", problem=problem, shared=False))
    with contextlib.suppress(OSError):
        os.write(report_fd, to_json(ended) + b"\n")
    if sys.platform != "win32":
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _line(control: socket.socket) -> bytes:
    """Raises ``ConnectionError`` where the other end has gone."""
    line = b""
    while not line.endswith(b"\n"):
        got = control.recv(_READ)
        if not got:
            raise ConnectionError("the other end has gone")
        line += got
    return line
