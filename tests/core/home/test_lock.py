"""One node per home."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.home.lock import HomeLock
from core.vocabulary.errors import TandemError


def test_a_held_home_says_which_process_has_it(tmp_path: Path) -> None:
    lock = HomeLock.acquire(tmp_path / "node.lock")

    with pytest.raises(TandemError) as failure:
        HomeLock.acquire(tmp_path / "node.lock")

    assert failure.value.code == "home-held"
    assert f"process {os.getpid()}" in failure.value.what
    assert "--home" in failure.value.fix
    lock.release()


def test_a_released_home_can_be_taken_again(tmp_path: Path) -> None:
    lock = HomeLock.acquire(tmp_path / "node.lock")
    lock.release()
    lock.release()

    HomeLock.acquire(tmp_path / "node.lock").release()


def test_text_left_by_an_old_holder_does_not_lock(tmp_path: Path) -> None:
    (tmp_path / "node.lock").write_text("123456789012345678901234567890 not a process")

    lock = HomeLock.acquire(tmp_path / "node.lock")

    assert (tmp_path / "node.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "node.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(TandemError) as failure:
        HomeLock.acquire(tmp_path / "node.lock")

    assert failure.value.code == "home-unusable"
    assert (tmp_path / "elsewhere").read_text() == "precious"


@pytest.mark.real
def test_a_killed_holder_frees_its_home(tmp_path: Path) -> None:
    path = tmp_path / "node.lock"
    code = (
        "import sys, pathlib; from core.home.lock import HomeLock;"
        "lock = HomeLock.acquire(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TandemError):
            HomeLock.acquire(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(60)

        HomeLock.acquire(path).release()
