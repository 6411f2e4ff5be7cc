"""The trainer process: ``python -m core.trainer --orders N --reports N --leash N``, started by a node."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable

from core.supervisor import kinship, parent_death
from core.supervisor.spawn import LOADED, SEALED_ARGUMENT, WALLS_ARGUMENT, WARM_ARGUMENT
from core.trainer import script, warm
from core.trainer.orders import Orders, claim
from core.trainer.reporter import Reporter
from core.trainer.sealed import process
from core.trainer.walls import begin_watcher, raise_walls, read_walls
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import Booted, Enclosure, Ended

_FLUSH_S = 10.0


def run(arguments: list[str]) -> None:
    """Runs from a command line; a frozen program calls this after its hidden argument. Does not return."""
    parser = argparse.ArgumentParser(prog="core.trainer")
    for name in ("orders", "reports", "leash"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument(SEALED_ARGUMENT, action="store_true")
    parser.add_argument(WALLS_ARGUMENT, type=read_walls)
    parser.add_argument(WARM_ARGUMENT, action="store_true")
    parsed = parser.parse_args(arguments)
    kinship.mark()
    channels = claim(parsed.orders), claim(parsed.reports), claim(parsed.leash)
    parent_death.arm(channels[2])
    # The node's parent may have ignored these signals, as a shell does for background jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if parsed.warm:
        wait(channels)
    else:
        main(Orders(channels[0]), channels[1], sealed=parsed.sealed, walls=parsed.walls)


def wait(channels: tuple[int, int, int]) -> None:
    """Imports TensorFlow before its run is known, and then goes on as ``main``. Does not return."""
    given = dict(os.environ)
    watcher = begin_watcher()
    loaded_s = _load(channels[1])
    os.write(channels[1], LOADED)
    orders = Orders(channels[0])
    begin = orders.wait_begin()
    if begin is None:
        os._exit(0)
    ready = warm.become(begin, given, channels, () if watcher is None else (watcher.fileno(),))
    main(
        orders,
        channels[1],
        sealed=begin.sealed,
        walls=begin.walls,
        loaded_s=loaded_s,
        ready=ready,
        watcher=watcher,
    )


def main(
    orders: Orders,
    report_fd: int,
    *,
    sealed: bool = False,
    walls: Enclosure | None = None,
    loaded_s: float | None = None,
    ready: Callable[[], None] = lambda: None,
    watcher: socket.socket | None = None,
) -> None:
    """Raises the walls, imports TensorFlow, reports it, reads the order, runs it, exits. Does not return.

    ``loaded_s``: seconds that an earlier import took. ``ready`` is called within the walls.
    """
    seal = process.begin(report_fd) if sealed else None
    try:
        if walls is not None:
            raise_walls(walls, watcher)
        elif watcher is not None:
            watcher.close()
    except TandemError as error:
        _leave(Reporter(report_fd), Exit(reason="killed", shared=False, problem=error.problem), 1)
    ready()
    if loaded_s is None:
        loaded_s = _load(report_fd)
    import tensorflow as tf

    from core.trainer.session import TrainerSession

    reporter = Reporter(report_fd)
    # Only now, behind the walls: a GPU's driver starts threads.
    devices = tuple(_device_name(tf, gpu) for gpu in tf.config.list_physical_devices("GPU"))
    reporter.send(Booted(seconds=loaded_s, devices=devices))
    train = orders.wait_train()
    if train is None:
        os._exit(0)
    exit = TrainerSession(train, reporter, orders, seal).run()
    _leave(reporter, exit, 0 if exit.reason in ("finished", "stopped") else 1)


def _load(report_fd: int) -> float:
    """Imports TensorFlow without starting a second thread. Returns the seconds that it took."""
    began_s = time.monotonic()
    gc.disable()  # Nothing that is imported is garbage, and collecting took a fifth of the time.
    try:
        import tensorflow  # noqa: F401

        import core.trainer.session  # noqa: F401
    except BaseException as error:
        _leave(Reporter(report_fd), _tensorflow_broken(error), 1)
        raise
    gc.freeze()
    gc.enable()
    return time.monotonic() - began_s


def _leave(reporter: Reporter, exit: Exit, status: int) -> None:
    """Reports ``exit`` and ends the process without TensorFlow's shutdown, which may hang in a cluster."""
    _flush()
    reporter.send(Ended(exit=exit))
    reporter.flush(_FLUSH_S)
    script.run_exit_functions()
    _flush()
    os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass


def _device_name(tf: object, gpu: object) -> str:
    try:
        details = tf.config.experimental.get_device_details(gpu)  # type: ignore[attr-defined]
        return str(details.get("device_name") or gpu.name)  # type: ignore[attr-defined]
    except Exception:
        return str(getattr(gpu, "name", gpu))


def _tensorflow_broken(error: BaseException) -> Exit:
    return Exit(
        reason="killed",
        shared=False,
        problem=Problem(
            code="tensorflow-broken",
            what=f"TensorFlow cannot be loaded here: {type(error).__name__}: {str(error)[:300]}",
            fix="Install Tandem again; `tandem doctor --deep` shows what is wrong with TensorFlow.",
        ),
    )


if __name__ == "__main__":
    run(sys.argv[1:])
