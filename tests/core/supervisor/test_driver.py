"""The run thread with real processes as trainers: limits, increasing force, exactly one final report."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from core.supervisor import memory_kills, spawn
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.memory_kills import MemoryKills
from core.supervisor.state import Limits
from core.vocabulary import trainer_messages
from tests.core.run.fake_trainer import COMMAND
from tests.core.trainer.attended import LONG_S, Attended

pytestmark = pytest.mark.real

FINISH = (
    "from core.vocabulary.phases import Exit; say(Ended(exit=Exit(reason='finished', weights_sha256='ab')))"
)
READY = "say(Said(words='ready'))"
SHORT = Limits(boot_s=LONG_S, grace_s=0.2, terminate_s=0.2, leave_s=LONG_S)

Make = Callable[..., Attended]


@pytest.fixture(params=["pipes", "pumps"])
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    """Each test with this system's pipes, and with Windows'."""
    monkeypatch.setattr(spawn, "command", lambda: COMMAND)
    if request.param == "pumps":
        monkeypatch.setattr(spawn, "needs_pumps", lambda: True)
    return lambda script, **more: Attended(tmp_path / "logs" / "log", script=script, **more)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def wait_gone(pid: int) -> None:
    async with asyncio.timeout(LONG_S):
        while not is_gone(pid):  # noqa: ASYNC110 (nobody tells of a process that is not our child)
            await asyncio.sleep(0.02)


async def test_a_trainer_that_says_how_it_ended_is_believed(run: Make) -> None:
    trainer = run(f"print('hello'); {FINISH}")
    exit = await trainer.exit()
    assert (exit.reason, exit.weights_sha256) == ("finished", "ab")
    assert trainer.text() == "hello"
    assert trainer.log.read_text() == "hello\n"
    assert [type(report) for report in trainer.reports] == [trainer_messages.Booted]


async def test_invalid_text_and_escapes_are_made_plain(run: Make) -> None:
    trainer = run(f"import os; os.write(2, b'\\x1b[2J\\xff\\x1b]0;title\\x07 a\\rb\\n'); {FINISH}")
    await trainer.exit()
    assert trainer.text("stderr") == "b"


async def test_stop_reaches_the_trainer_as_an_order(run: Make) -> None:
    waits = "orders.follow(lambda: None); " + READY + "; orders.stop_asked.wait(); "
    end = "from core.vocabulary.phases import Exit; say(Ended(exit=Exit(reason='stopped')))"
    trainer = run(waits + end)
    await trainer.wait(lambda: trainer.of(trainer_messages.Said))
    trainer.stop()
    assert (await trainer.exit()).reason == "stopped"


async def test_the_ladder_ends_at_kill_and_takes_the_whole_group(run: Make) -> None:
    deaf = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "deaf = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)'; "
        "child = subprocess.Popen([sys.executable, '-c', deaf]); "
        "say(Said(words=str(child.pid))); time.sleep(3600)"
    )
    trainer = run(deaf, limits=SHORT)
    await trainer.wait(lambda: trainer.of(trainer_messages.Said))
    pid = int(trainer.of(trainer_messages.Said)[0].words)
    assert not is_gone(pid)
    trainer.stop()
    exit = await trainer.exit()
    assert exit.problem is not None
    assert (exit.reason, exit.problem.code) == ("killed", "stop-forced")
    assert "after Stop" in exit.problem.what
    await wait_gone(pid)


async def test_how_long_tensorflow_took_is_kept_for_the_next_trainer(run: Make, tmp_path: Path) -> None:
    times = LoadingTimes(tmp_path / "loading.json")
    slow = "say(Booted(seconds=100.0, devices=()))"
    assert (await run(f"{slow}; {FINISH}", loading=times).exit()).reason == "finished"
    assert times.limit_s() == 400.0


async def test_a_limit_that_ran_out_gives_the_next_trainer_a_longer_one(
    run: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-c", "import time; time.sleep(3600)"])
    times = LoadingTimes(tmp_path / "loading.json", least_s=0.2)
    exit = await run("", loading=times).exit()
    assert exit.problem is not None and exit.problem.code == "tensorflow-slow"
    assert times.limit_s() == 0.8


@pytest.mark.parametrize("end", [FINISH, "import os; os.kill(os.getpid(), 9)"], ids=["finished", "killed"])
async def test_a_trainers_temporary_files_end_with_it(run: Make, tmp_path: Path, end: str) -> None:
    place = tmp_path / "tmp" / "9f3a01bc-chief-0"
    write = "open(train.temporary + '/left', 'w').close(); " + READY + "; "
    wait = "orders.follow(lambda: None); orders.stop_asked.wait(); "
    trainer = run(write + wait + end, temporary=str(place))
    await trainer.wait(lambda: trainer.of(trainer_messages.Said))
    assert (place / "left").is_file()
    trainer.stop()
    await trainer.exit()
    assert not place.exists()


async def test_a_boot_that_breaks_is_reported_with_its_output(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-c", "raise ImportError('no libfoo')"])
    exit = await run("").exit()
    assert exit.problem is not None
    assert exit.problem.code == "tensorflow-broken"
    assert "no libfoo" in exit.problem.detail


async def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_end(run: Make) -> None:
    away = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; "
        "time.sleep(3600)'], start_new_session=True); say(Said(words=str(child.pid))); " + FINISH
    )
    trainer = run(away)
    try:
        assert (await trainer.exit()).reason == "finished"
    finally:
        psutil.Process(int(trainer.of(trainer_messages.Said)[0].words)).kill()


async def test_the_kernels_count_shows_that_memory_ran_out(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([MemoryKills(group=4, machine=7), MemoryKills(group=5, machine=8)])
    monkeypatch.setattr(memory_kills, "counted", lambda: next(counts))
    exit = await run("import os; os.kill(os.getpid(), 9)").exit()
    assert exit.reason == "out-of-memory"


async def test_the_trainers_environment_is_its_own(run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", "somebody else's")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    names = "('TF_CONFIG', 'TF_CPP_MIN_LOG_LEVEL', 'KERAS_BACKEND', 'MPLBACKEND')"
    trainer = run(f"import os, sys; print([os.environ.get(n) for n in {names}], sys.stdin.read()); {FINISH}")
    await trainer.exit()
    assert trainer.text().startswith("[None, '0', 'tensorflow', ")


def test_a_trainer_runs_at_a_lower_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "command", lambda: [sys.executable, "-c", "import time; time.sleep(60)"])
    child = spawn.spawn()
    try:
        assert psutil.Process(child.pid).nice() == min(19, psutil.Process().nice() + spawn.NICE)
        group = Path(f"/proc/{child.pid}/autogroup")
        if group.exists():  # Only Linux has these groups, and a kernel may be built without them
            assert group.read_text().endswith(f" nice {spawn.NICE}\n")
    finally:
        child.end()
