"""Starts the matrix's processes and waits for them; if one dies or hangs, shows its last output."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import random
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest import mock

import msgspec

from core.vocabulary.trainer_messages import Enclosure
from core.vocabulary.wire import to_json
from core.walls import enclosure
from tests.core.trainer.attended import keys_for

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 800.0
"""For members of a single test: a little less than the test's own limit, so that their last output is shown.
"""


def free_ports(count: int) -> list[int]:
    """Ports in 20000-32000, below the ephemeral range, on which nothing listens at the moment."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = random.randint(20000, 32000)
            listener = stack.enter_context(socket.socket())
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def folders_in(out: Path, shares: tuple[int, ...]) -> list[Path]:
    """Each process's own."""
    return [out / f"rank{rank}" for rank in range(max(1, len(shares)))]


def finished(folder: Path, name: str) -> bool:
    """Whether a process finished a scenario, even with an error."""
    return (folder / f"{name}.npz").exists() or (folder / f"{name}.error").exists()


def run(
    shares: tuple[int, ...],
    names: Sequence[str],
    out: Path,
    limit_s: float,
    module: str = "tests.exactness.member",
    wire: str = "f32",
    devices: Sequence[int] = (),
    walled: bool = False,
    calibrated: Sequence[str] = (),
    sync: str = "exact",
) -> list[Path]:
    """Runs scenarios in one plain process (no shares) or in a member for each share; returns their folders.

    ``devices``: the logical processor that each member computes on; they meet on the first of each.
    ``walled``: each is within walls, as the trainers of another laptop's script. ``calibrated``: scenarios
    of the matrix whose steps are measured before the first one, which takes another trace. ``sync``: when
    members meet.
    Raises AssertionError with the children's last words if one dies or the limit runs out.
    """
    ports = free_ports(len(shares))
    keys = keys_for(len(shares))
    folders = folders_in(out, shares)
    children: list[Child] = []
    try:
        for rank, folder in enumerate(folders):
            folder.mkdir(parents=True)
            walls = _walls(folder, ports[rank], ports) if walled else None
            order = {
                "rank": rank,
                "ports": ports,
                "keys": msgspec.to_builtins(keys[rank]) if keys else None,
                "shares": shares,
                "wire": wire,
                "sync": sync,
                "devices": list(devices or [0] * len(folders)),
                "names": list(names),
                "out": str(folder),
                "calibrated": list(calibrated),
                "walls": to_json(walls).decode() if walls else "",
            }
            children.append(_fresh(module, order, folder, walls) if walls else _copy(module, order, folder))
        _wait(children, folders, limit_s)
    finally:
        for child in children:
            child.kill()
            if isinstance(child, ForkServerProcess):
                child.join()
            else:
                child.communicate()
    return folders


Child = subprocess.Popen[bytes] | ForkServerProcess


def _fresh(module: str, order: dict[str, object], folder: Path, walls: Enclosure) -> Child:
    """A process that raises its walls before it loads anything."""
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(order)],
            cwd=ROOT,
            env=enclosure.environment(walls, environment()),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _copy(module: str, order: dict[str, object], folder: Path) -> Child:
    """A copy of a process that has loaded TensorFlow, which takes longer than a scenario."""
    with _beginning:
        child = _loaded().Process(target=_become, args=(module, json.dumps(order), str(folder / "log")))
        child.start()
    return child


_beginning = threading.Lock()


@functools.cache
def _loaded() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    # pytest, too: each copy imports the main module of this process.
    context.set_forkserver_preload(["pytest", "keras", "core.trainer.exact.patch.install"])
    with mock.patch.dict(os.environ, environment(), clear=True):
        forkserver.ensure_running()
    return context


def _become(module: str, order: str, log: str) -> None:
    """In the copy."""
    with Path(log).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import numpy as np

    np.random.seed()  # otherwise what no script has seeded is the same in all copies
    os.chdir(ROOT)
    sys.argv = [module, order]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end(child: Child) -> int | None:
    return child.poll() if isinstance(child, subprocess.Popen) else child.exitcode


def _walls(folder: Path, port: int, ports: Sequence[int]) -> Enclosure:
    """``folder`` is the member's own, beside its home. The scenarios' modules take the place of a project."""
    home = folder.with_name(f"{folder.name}-home")
    walls = Enclosure(
        folders=(str(folder), str(home)),
        home=str(home),
        user=str(Path.home()),
        reads=(str(ROOT / "tests"),),
        port=port,
        calls=tuple(ports),
    )
    enclosure.prepare(walls)
    return walls


def environment() -> dict[str, str]:
    quiet = {
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONUNBUFFERED": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
    }
    kept = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"}
    return {**kept, **quiet, "PYTHONPATH": str(ROOT)}


def _wait(children: list[Child], folders: list[Path], limit_s: float) -> None:
    """Waits until all are done, one has died, or none has finished a scenario for limit_s."""
    marks: list[float] = []
    since = time.monotonic()
    while any(_end(child) is None for child in children):
        died = [rank for rank, child in enumerate(children) if _end(child) not in (None, 0)]
        now = [_mark(folder) for folder in folders]
        if now != marks:
            marks, since = now, time.monotonic()
        late = time.monotonic() - since > limit_s
        assert not died and not late, _last_words(folders, f"died: ranks {died}" if died else "no progress")
        time.sleep(0.1)
    failed = [rank for rank, folder in enumerate(folders) if not (folder / "done").exists()]
    assert not failed, _last_words(folders, f"ended early: ranks {failed}")


def _mark(folder: Path) -> float:
    times = folder / "times.json"
    return times.stat().st_mtime if times.exists() else 0.0


def _last_words(folders: list[Path], what: str) -> str:
    words = [what]
    for folder in folders:
        words += [f"--- {folder.name}", (folder / "log").read_text(errors="replace")[-4000:]]
    return "\n".join(words)
