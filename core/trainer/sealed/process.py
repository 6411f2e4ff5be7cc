"""Seals a trainer, first of all: its network becomes one of its own, and its relay a process that is left
outside. Call ``begin`` before anything has started a thread.

The trainer's process group holds the relay and whoever makes sockets for it: they end together.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable
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
    _apart(lambda: _relay(relays, asking, report_fd), control, giving)
    relays.close()
    asking.close()
    refusal = None
    try:
        namespace.enter()
    except OSError as error:
        refusal = error
    else:
        _apart(lambda: namespace.give_sockets(giving), control)
    giving.close()
    return Sealed(control, refusal)


def _apart(work: Callable[[], None], *of_others: socket.socket) -> None:
    """Do it in a process of its own, which ends with it. ``of_others``: what it is not to hold open."""
    if os.fork():
        return
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


def _relay(control: socket.socket, asking: socket.socket, report_fd: int) -> None:
    """In the relay's process, until the trainer has ended."""
    try:
        line = _line(control)
    except OSError:  # the trainer ended before it had anything to do
        return
    opening = from_json(line, Opening)
    trainer = os.getppid()

    def check() -> None:
        try:
            problem = _why_open(trainer, opening.way)
        except OSError as error:
            problem = problems.not_sealed(error)
        if problem is not None:
            _end_trainer(problem, report_fd)

    # Loaded here: the trainer itself needs nothing of it.
    from core.trainer.sealed.relay import Relay

    apart = opening.way == "namespace"
    inside = namespace.taking(asking) if apart else socket.socket
    # On the laptop's own loopback the script has the laptop's network, too.
    seal = opening.seal if apart else structs.replace(opening.seal, downloads=False)
    try:
        relay = Relay(opening.run, opening.rank, seal, inside, check)
        environment = relay.start()
    except TandemError as error:
        control.sendall(to_json(RelayReady(problem=error.problem)) + b"\n")
        return
    except OSError as error:
        control.sendall(to_json(RelayReady(problem=problems.relay_broke(error))) + b"\n")
        return
    control.sendall(to_json(RelayReady(environment=environment)) + b"\n")
    with contextlib.suppress(OSError):
        control.recv(1)


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
