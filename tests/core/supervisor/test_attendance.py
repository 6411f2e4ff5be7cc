"""The run thread with a fake trainer: what it forwards, orders, ends and closes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from core.runtime.bounded_file import BoundedFile
from core.supervisor import parent_death, ports, spawn
from core.supervisor.driver import LONGEST_PAUSE_S, OUTPUT_AT_ONCE, REPORTS_AT_ONCE
from core.supervisor.state import Limits
from core.supervisor.warm import FORESEEN_S, WarmTrainer
from core.vocabulary import trainer_messages
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.progress import Progress
from tests.core.supervisor.fake_child import FakeChild
from tests.core.trainer.attended import GENEROUS, LONG_S, Attended

BOOTED = trainer_messages.Booted(seconds=1.0, devices=())
STEP = trainer_messages.Progressed(progress=Progress(at_s=1.0, epoch=0, epochs=1, step=0, batch=0))
ENDED = trainer_messages.Ended(exit=Exit(reason="finished", weights_sha256="ab"))
READY = trainer_messages.Said(words="ready")
AT_ONCE = Limits(boot_s=LONG_S, grace_s=0.01, terminate_s=0.01, leave_s=0.01)

Make = Callable[..., tuple[FakeChild, Attended]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    children: dict[int, FakeChild] = {}
    monkeypatch.setattr(parent_death, "watch_death", lambda pid: children[pid].death)

    def make(
        *, deaf: bool = False, warm: bool = False, limits: Limits = GENEROUS, **train: Any
    ) -> tuple[FakeChild, Attended]:
        child = FakeChild(deaf=deaf, warm=warm)
        children[child.pid] = child
        return child, Attended(tmp_path / "log", child=child, limits=limits, **{"script": "s.py", **train})

    return make


async def ready(child: FakeChild, trainer: Attended) -> None:
    child.say(BOOTED, READY)
    await trainer.wait(lambda: trainer.of(trainer_messages.Said))


async def test_a_booted_trainer_gets_its_order_and_its_reports_are_passed_on(run: Make) -> None:
    child, trainer = run()
    child.say(BOOTED, STEP, READY)
    await trainer.wait(lambda: trainer.of(trainer_messages.Said))
    (order,) = child.orders_given()
    assert isinstance(order, trainer_messages.Train) and order.script == "s.py"
    assert trainer.reports == [BOOTED, STEP, READY]
    assert trainer.process.pid == child.pid
    child.say(ENDED)
    child.die()
    assert (await trainer.exit()).weights_sha256 == "ab"
    assert trainer.reports == [BOOTED, STEP, READY], "the last word is the exit"
    assert child.reaped and child.signals == [signal.SIGKILL], "what is left of its group goes"


async def test_a_warm_trainer_is_first_told_what_others_are_started_with(
    run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    own = str(tmp_path / "own")
    walls = trainer_messages.Enclosure(folders=(own,), home=own, user=str(tmp_path))
    for inside in (None, walls):
        child, trainer = run(warm=True, walls=inside)
        await ready(child, trainer)
        begin, train = child.orders_given()
        assert isinstance(begin, trainer_messages.Become) and isinstance(train, trainer_messages.Train)
        assert (begin.walls, begin.sealed) == (inside, False)
        variables = spawn.unpacked(begin.environment)
        assert variables["OMP_NUM_THREADS"] == "3" and variables["PYTHONHASHSEED"] == "0"
        assert ("A_TOKEN" in variables) == (inside is None)
        assert inside is None or (variables["HOME"] == own and Path(own).is_dir())
        child.say(ENDED)
        child.die()
        await trainer.exit()


async def test_output_before_the_order_goes_to_the_log_only(run: Make) -> None:
    child, trainer = run()
    child.write(b"loading\n")
    child.write(b"chatter\n", stderr=True)
    while not trainer.log.exists() or trainer.log.stat().st_size < 16:  # noqa: ASYNC110  (another thread writes)
        await asyncio.sleep(0.001)
    await ready(child, trainer)
    child.write(b"epoch 1\n")
    child.write(b"careful\n", stderr=True)
    child.say(ENDED)
    child.die()
    await trainer.exit()
    assert (trainer.text(), trainer.text("stderr")) == ("epoch 1", "careful")
    assert {lines.task for lines in trainer.output} == {"chief:0"}
    assert trainer.log.read_text().split() == ["loading", "chatter", "epoch", "1", "careful"]


async def test_a_last_line_without_an_end_is_passed_on(run: Make) -> None:
    child, trainer = run()
    await ready(child, trainer)
    child.write(b"no end")
    child.die()
    await trainer.exit()
    assert trainer.text() == "no end"


async def test_nonsense_among_the_reports_goes_to_the_log(run: Make) -> None:
    child, trainer = run()
    child.say(BOOTED)
    os.write(child.own_reports, b"{]" + b"x" * 600 + b"\n")
    child.say(READY, ENDED)
    child.die()
    assert (await trainer.exit()).reason == "finished"
    assert trainer.reports == [BOOTED, READY]
    written = trainer.log.read_text()
    assert written.startswith("[tandem] not a report: {]x") and len(written) < 600


async def test_a_script_that_floods_its_node_by_the_reports_pipe_is_read_slowly(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("core.supervisor.driver.time.sleep", pauses.append)
    child, trainer = run()
    await ready(child, trainer)
    assert not pauses
    count = REPORTS_AT_ONCE + 2_000

    def flood() -> None:
        for _ in range(count):
            child.say(STEP)

    await asyncio.to_thread(flood)
    child.say(ENDED)
    child.die()
    await trainer.exit()
    assert pauses and max(pauses) <= LONGEST_PAUSE_S
    assert len(trainer.reports) >= count, "none of them is lost"


async def test_a_script_that_prints_without_end_is_read_slowly(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("core.supervisor.driver.time.sleep", pauses.append)
    child, trainer = run(limits=replace(GENEROUS, output_bytes_s=1.0))
    await ready(child, trainer)

    def flood() -> None:
        for _ in range(1 + OUTPUT_AT_ONCE // 1_020_000):
            child.write(b"y\n" * 10_000)

    await asyncio.to_thread(flood)
    child.say(ENDED)
    child.die()
    await trainer.exit()
    assert pauses and max(pauses) <= LONGEST_PAUSE_S


async def test_stop_is_an_order_first(run: Make) -> None:
    child, trainer = run()
    await ready(child, trainer)
    child.orders_given()
    trainer.stop()
    while not (orders := child.orders_given()):  # noqa: ASYNC110  (another thread writes)
        await asyncio.sleep(0.001)
    assert orders == [trainer_messages.Stop()]
    assert child.signals == []
    child.say(trainer_messages.Ended(exit=Exit(reason="stopped")))
    child.die()
    assert (await trainer.exit()).reason == "stopped"


async def test_the_list_of_members_gone_is_passed_on_after_the_order_to_train(run: Make) -> None:
    child, trainer = run()
    trainer.order(trainer_messages.MeetWithout(generation=1, gone=(1,)))
    order = trainer_messages.MeetWithout(generation=2, gone=(1,))
    await ready(child, trainer)
    trainer.order(order)
    given: list[trainer_messages.Order] = []
    while order not in given:
        given += child.orders_given()
        await asyncio.sleep(0.001)
    assert isinstance(given[0], trainer_messages.Train) and given[-1] == order
    child.say(ENDED)
    child.die()
    assert (await trainer.exit()).reason == "finished"


@pytest.mark.parametrize(
    ("force", "signals"),
    [(1, [signal.SIGTERM, signal.SIGKILL]), (2, [signal.SIGKILL, signal.SIGKILL])],
)
async def test_more_force_is_a_signal(run: Make, force: int, signals: list[signal.Signals]) -> None:
    child, trainer = run()
    await ready(child, trainer)
    trainer.stop(force)  # type: ignore[arg-type]
    end = await trainer.exit()
    assert end.reason == "killed" and end.problem is not None and end.problem.code == "stop-forced"
    assert child.signals == signals


async def test_a_trainer_that_takes_no_hint_is_asked_terminated_and_killed(run: Make) -> None:
    child, trainer = run(deaf=True, limits=AT_ONCE)
    await ready(child, trainer)
    trainer.stop()
    end = await trainer.exit()
    assert end.reason == "killed"
    assert child.signals == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]


async def test_a_trainer_that_does_not_end_after_its_last_report_is_killed_and_believed(run: Make) -> None:
    child, trainer = run(limits=AT_ONCE)
    child.say(BOOTED, ENDED)
    assert (await trainer.exit()).reason == "finished"
    assert signal.SIGKILL in child.signals


async def test_a_trainer_that_reads_no_orders_is_killed(run: Make) -> None:
    child, trainer = run(limits=AT_ONCE, arguments=("x" * (1 << 20),))
    child.say(BOOTED)
    assert (await trainer.exit()).reason == "killed"
    assert child.signals[0] == signal.SIGKILL


async def test_an_order_longer_than_the_pipe_goes_out_in_pieces(run: Make) -> None:
    child, trainer = run(arguments=("x" * (1 << 18),))
    child.say(BOOTED)
    data = b""
    while not data.endswith(b"\n"):
        data += await asyncio.to_thread(os.read, child.own_orders, 1 << 16)
    assert len(data) > 1 << 18
    child.say(ENDED)
    child.die()
    assert (await trainer.exit()).reason == "finished"


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        (0, "killed", "script-left"),
        (3, "killed", "script-left"),
        (-9, "killed", "killed"),
        (-11, "killed", "crashed"),
    ],
)
async def test_an_end_without_a_report_is_explained_with_the_last_lines(
    run: Make, status: int, reason: str, code: str
) -> None:
    child, trainer = run()
    await ready(child, trainer)
    child.write(b"".join(b"line %d\n" % number for number in range(100)), stderr=True)
    child.die(status)
    end = await trainer.exit()
    assert end.problem is not None
    assert (end.reason, end.problem.code) == (reason, code)
    assert end.problem.detail.splitlines() == [f"line {number}" for number in range(60, 100)]


async def test_a_process_that_holds_the_pipes_open_is_not_waited_for(run: Make) -> None:
    child, trainer = run(limits=replace(GENEROUS, drain_s=0.05))
    await ready(child, trainer)
    child.write(b"last words\n")
    child.say(ENDED)
    child.die(leaves_pipes_open=True)
    assert (await trainer.exit()).reason == "finished"
    assert trainer.text() == "last words"
    for fd in (child.own_stdout, child.own_stderr):
        os.close(fd)


async def test_peers_that_do_not_connect_are_probed(run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[tuple[dict[str, str], float]] = []

    def probe(peers: dict[str, str], limit_s: float) -> dict[str, str]:
        probed.append((peers, limit_s))
        return dict.fromkeys(peers, "refused")

    monkeypatch.setattr(ports, "try_peers", probe)
    peers = {"worker:0": "Ben at 10.0.0.3:20002"}
    child, trainer = run(peers=peers, meet_timeout_s=0.02)
    child.say(BOOTED, trainer_messages.Connecting())
    end = await trainer.exit()
    assert end.reason == "never-met" and end.problem is not None and "Ben" in end.problem.what
    assert probed == [(peers, GENEROUS.probe_s)]


async def test_a_log_that_cannot_be_written_is_reported_once(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ["The log cannot be written."]
    monkeypatch.setattr(BoundedFile, "trouble", lambda self: told.pop() if told else "")
    child, trainer = run()
    await ready(child, trainer)
    child.say(ENDED)
    child.die()
    await trainer.exit()
    assert trainer.text("tandem") == "The log cannot be written."


async def test_a_trainer_that_cannot_be_started_is_an_end_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*, sealed: bool, walls: object) -> spawn.Child:
        assert not sealed
        raise TandemError(code="trainer-not-started", what="No more processes.")

    monkeypatch.setattr(spawn, "spawn", fail)
    trainer = Attended(tmp_path / "log", script="s.py")
    end = await trainer.exit()
    assert end.problem == Problem(code="trainer-not-started", what="No more processes.")
    assert end.reason == "killed" and not end.shared
    assert trainer.process.pid is None
    trainer.stop(2)


async def test_supervision_that_breaks_ends_the_trainer_and_says_so(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(parent_death, "watch_death", broken)
    child, trainer = run()
    end = await trainer.exit()
    assert end.problem is not None and end.problem.code == "supervision-broke" and not end.shared
    assert child.signals == [signal.SIGKILL] and child.reaped


# --- kept ready ---------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeChild]:
    children: list[FakeChild] = []

    def start() -> FakeChild:
        children.append(FakeChild())
        return children[-1]

    monkeypatch.setattr(spawn, "spawn_warm", start)
    return children


def close(child: FakeChild) -> None:
    child.end()
    os.close(child.death)


async def test_a_trainer_kept_ready_is_given_away_once(started: list[FakeChild]) -> None:
    warm = WarmTrainer()
    assert warm.hand_over() is None
    await warm.make_ready()
    await warm.make_ready()
    assert len(started) == 1
    assert warm.hand_over() is started[0] and warm.hand_over() is None
    await warm.make_ready()
    assert warm.hand_over() is started[1]
    assert not any(child.reaped for child in started)
    for child in started:
        close(child)


async def test_a_warm_trainer_that_died_while_it_waited_is_replaced(started: list[FakeChild]) -> None:
    warm = WarmTrainer()
    await warm.make_ready()
    started[0].die(1)
    assert warm.hand_over() is None and started[0].reaped
    await warm.make_ready()
    started[1].die(1)
    await warm.make_ready()
    assert started[1].reaped and warm.hand_over() is started[2]
    close(started[2])


async def test_a_warm_trainer_ends_when_it_is_no_longer_wanted(started: list[FakeChild]) -> None:
    warm = WarmTrainer()
    await warm.end()
    await warm.make_ready()
    await warm.end()
    assert started[0].reaped and warm.hand_over() is None
    starting = asyncio.create_task(warm.make_ready())
    await asyncio.sleep(0)
    await warm.end()
    await starting
    assert started[1].reaped and warm.hand_over() is None


async def test_one_of_two_trainers_started_at_once_is_kept(started: list[FakeChild]) -> None:
    warm = WarmTrainer()
    await asyncio.gather(warm.make_ready(), warm.make_ready())
    kept = warm.hand_over()
    assert kept is not None
    assert sorted(child.reaped for child in started) == [False, True]
    close(next(child for child in started if child is kept))


@pytest.fixture
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def are(available: int) -> None:
        found = SimpleNamespace(available=available)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: found)

    are(8_000_000_000)
    return are


@pytest.mark.usefixtures("free_bytes")
async def test_a_trainer_for_a_run_in_preparation_is_given_to_it_and_no_other_follows(
    started: list[FakeChild],
) -> None:
    warm = WarmTrainer()
    warm.foresee()
    warm.foresee()
    await warm._background.wait_idle()
    assert len(started) == 1 and warm.hand_over() is started[0]
    assert warm._foreseen is None
    await warm.end()
    assert len(started) == 1
    close(started[0])


@pytest.mark.usefixtures("free_bytes")
@pytest.mark.parametrize("why", ["time", "memory"])
async def test_a_trainer_for_a_run_that_never_came_ends(started: list[FakeChild], why: str) -> None:
    warm = WarmTrainer()
    warm.foresee()
    await warm._background.wait_idle()
    warm.on_memory(2_000_000_000)
    assert [child.reaped for child in started] == [False]
    assert warm._foreseen is not None
    left_s = warm._foreseen.when() - asyncio.get_running_loop().time()
    assert left_s == pytest.approx(FORESEEN_S, abs=10)
    if why == "memory":
        warm.on_memory(500_000_000)
    else:
        warm._on_time()  # as its timer does
    await warm._background.wait_idle()
    assert [child.reaped for child in started] == [True] and warm.hand_over() is None


@pytest.mark.usefixtures("free_bytes")
async def test_during_a_run_a_warm_trainer_waits_until_the_run_is_over_or_memory_is_short(
    started: list[FakeChild],
) -> None:
    runs = ["the present one"]
    warm = WarmTrainer(is_in_a_run=lambda: bool(runs))
    warm.foresee()
    await warm._background.wait_idle()
    warm._on_time()
    assert warm._foreseen is not None
    assert [child.reaped for child in started] == [False], "it may be needed yet"
    warm.on_memory(500_000_000)
    await warm._background.wait_idle()
    assert [child.reaped for child in started] == [True]
    warm.foresee()
    await warm._background.wait_idle()
    runs.clear()
    warm._on_time()
    await warm._background.wait_idle()
    assert [child.reaped for child in started] == [True, True]


async def test_without_memory_to_spare_and_after_the_end_none_is_started(
    started: list[FakeChild], free_bytes: Callable[[int], None]
) -> None:
    warm = WarmTrainer()
    free_bytes(1_000_000_000)
    warm.foresee()
    free_bytes(8_000_000_000)
    await warm.end()
    warm.foresee()
    await warm._background.wait_idle()
    assert not started


@pytest.mark.usefixtures("free_bytes")
async def test_a_trainer_that_is_always_kept_outlasts_a_run_that_never_came(
    started: list[FakeChild], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = WarmTrainer()
    await warm.hold(True, busy=False)
    warm.foresee()
    warm.on_memory(0)
    await warm._background.wait_idle()
    assert warm._foreseen is None and not started[0].reaped
    await warm.hold(False, busy=False)
    assert len(started) == 1 and started[0].reaped
