"""Members in separate processes, as in a run: the same sums; stopped and killed ones are waited for."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.exchange.members import identities, listener, numbers, rank_order_sum
from tests.core.exchange.process_member import SILENT_S, Order

pytestmark = pytest.mark.real


@contextmanager
def processes(
    folder: Path, members: int, elements: int, packs: int, steps: int
) -> Iterator[list[subprocess.Popen[str]]]:
    identities(folder, members)
    held = [listener() for _ in range(members)]
    ports = tuple(sock.getsockname()[1] for sock in held)
    started = []
    try:
        for rank, sock in enumerate(held):
            order = Order(rank, ports, sock.fileno(), str(folder), elements, packs, steps)
            command = [
                *(sys.executable, "-m", "tests.core.exchange.process_member"),
                msgspec.json.encode(order).decode(),
            ]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            started.append(subprocess.Popen(command, **pipes, text=True, pass_fds=[sock.fileno()]))
            sock.close()
        yield started
    finally:
        for sock in held:
            sock.close()
        for process in started:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe
                pipe.close()


def said(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout
    for line in process.stdout:
        if line.startswith(beginning):
            return line.removeprefix(beginning).strip()
    raise AssertionError(f"it ended without saying {beginning!r}")


def expected(members: int, elements: int, packs: int) -> str:
    sums = [
        rank_order_sum([numbers(rank, elements, pack) for rank in range(members)]) for pack in range(packs)
    ]
    return hashlib.sha256(b"".join(total.tobytes() for total in sums)).hexdigest()


@pytest.mark.parametrize("members", [2, 3])
def test_processes_have_the_sum_in_rank_order_and_end_cleanly(tmp_path: Path, members: int) -> None:
    with processes(tmp_path, members, 100_001, 2, 3) as started:
        for step in range(3):
            for process in started:
                assert said(process, f"step {step} ") == expected(members, 100_001, 2)
        for process in started:
            assert process.stdin
            process.stdin.close()
        assert [process.wait(20) for process in started] == [0] * members


def test_a_stopped_process_is_waited_for(tmp_path: Path) -> None:
    with processes(tmp_path, 2, 100_001, 2, 400) as (one, other):
        said(one, "step 0 ")
        other.send_signal(signal.SIGSTOP)
        said(one, "waits 1 connected")
        time.sleep(2 * SILENT_S)
        other.send_signal(signal.SIGCONT)
        for process in (one, other):
            assert said(process, "step 399 ") == expected(2, 100_001, 2)


def test_a_process_that_was_killed_is_waited_for_and_called(tmp_path: Path) -> None:
    with processes(tmp_path, 2, 100_001, 2, 100_000) as (one, other):
        said(one, "step 0 ")
        other.kill()
        said(one, "waits 1 dialling")
        assert one.poll() is None
