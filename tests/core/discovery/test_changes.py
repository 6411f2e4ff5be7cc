"""Network changes are reported, batched, without polling."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from core.discovery.changes import Changes

LIMIT_S = 60


@pytest.fixture
def kernel() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Replaces the kernel's socket: the second reads what is written to the first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


async def test_a_burst_of_changes_is_reported_once(kernel: tuple[socket.socket, socket.socket]) -> None:
    told: list[None] = []
    news = asyncio.Event()

    def on_change() -> None:
        told.append(None)
        news.set()

    follower = Changes(on_change, lambda: kernel[1], settle_s=0.0)
    for _ in range(20):
        kernel[0].send(b"something changed")
    follower.start()
    assert follower.followed
    try:
        async with asyncio.timeout(LIMIT_S):
            await news.wait()
    finally:
        follower.close()
    assert 1 <= len(told) < 20


async def test_without_reports_from_the_kernel_changes_are_polled() -> None:
    news = asyncio.Event()
    looked: list[None] = []

    def on_change() -> None:
        looked.append(None)
        if len(looked) == 3:
            news.set()

    def no_kernel() -> socket.socket:
        raise NotImplementedError("another system")

    follower = Changes(on_change, no_kernel, look_every_s=0.001)
    follower.start()
    assert not follower.followed
    async with asyncio.timeout(LIMIT_S):
        await news.wait()
    follower.close()
    assert len(looked) >= 3


_IN_A_NAMESPACE = """
import asyncio, subprocess
from core.discovery.changes import Changes

async def main():
    news = asyncio.Event()
    follower = Changes(news.set)
    follower.start()
    assert follower.followed
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    async with asyncio.timeout(60):
        await news.wait()
    follower.close()
    print("told")

asyncio.run(main())
"""


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="rtnetlink is Linux's")
def test_the_kernel_reports_when_an_interface_comes_up() -> None:
    """In its own network namespace: nothing of this machine is touched."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("unshare or ip is missing")
    space = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*space, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system forbids network namespaces")
    done = subprocess.run(
        [*space, sys.executable, "-c", _IN_A_NAMESPACE],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.strip() == "told", done.stderr
