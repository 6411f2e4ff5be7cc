"""A trainer's processes are recognised, however they were started; others are not taken for them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from core.supervisor import kinship, seals

pytestmark = pytest.mark.real

STAYS = "print(os.getpid(), flush=True); sys.stdin.read()"
LEAVES = f"""
import os, sys
from core.supervisor import kinship
kinship.mark()
{{enter}}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import os, sys; {STAYS}"])
"""


@contextlib.contextmanager
def process(code: str) -> Iterator[int]:
    """The pid on its first output line. It ends with its stdin."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdin is not None and started.stdout is not None
        yield int(started.stdout.readline())
        started.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="no process can be marked for good elsewhere")
@pytest.mark.parametrize("enter", ["", "from core.trainer.sealed import namespace; namespace.enter()"])
def test_a_process_that_leaves_a_trainers_session_and_parents_is_recognised_all_the_same(enter: str) -> None:
    if enter and seals.find() != "namespace":
        pytest.skip("this system forbids namespaces")
    with process(LEAVES.format(enter=enter)) as pid:
        assert os.getsid(pid) != os.getsid(0)
        assert kinship.is_of_a_trainer(pid)


def test_other_processes_of_this_user_are_no_trainers() -> None:
    with process(f"import os, sys; {STAYS}") as pid:
        assert not kinship.is_of_a_trainer(pid)
        assert not kinship.descends(pid)
    assert not kinship.is_of_a_trainer(os.getpid())


def test_without_a_mark_a_trainers_children_are_recognised_while_it_runs() -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', 'import os, sys; {STAYS}'])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as trainer:
        assert trainer.stdin is not None and trainer.stdout is not None
        child = int(trainer.stdout.readline())
        assert not kinship.descends(child)
        kinship.on_start(trainer.pid)
        assert kinship.descends(trainer.pid) and kinship.descends(child)
        kinship.on_end(trainer.pid)
        assert not kinship.descends(child)
        trainer.stdin.close()


def test_nothing_is_claimed_about_a_process_that_is_gone() -> None:
    with process(f"import os, sys; {STAYS}") as pid:
        pass
    for ask in (kinship.is_of_a_trainer, kinship.descends):
        with pytest.raises(OSError):
            ask(pid)
