"""A node's life: when it starts and when not, its answers, its end."""

import asyncio
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from core.home import settings_file, socket_path
from core.home.home import Home
from core.node import neighbours
from core.node.client import Client
from core.node.node import Node
from core.run import planning
from core.run.departure import Departure
from core.supervisor import seals
from core.supervisor.warm import WarmTrainer
from core.telemetry.gpus import Gpus
from core.telemetry.watch import Watch
from core.vocabulary import events as ev
from core.vocabulary.answers import Cleared, Done, Findings, Saved, StateNow, StorageMeasured
from core.vocabulary.commands import (
    AnalyseScript,
    CancelPairing,
    ChangeSettings,
    Clear,
    ForeseeRun,
    GetState,
    MeasureStorage,
    Mend,
    PlanRun,
    Quit,
    RunDoctor,
    SaveDiagnostics,
    StopRun,
)
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.plan import RunSpec
from core.vocabulary.readings import Reading
from core.vocabulary.settings import Settings, SettingsChange
from tests.core.nodes import Heard, home_of, id_of, node, quick_watch, refusal, wait_for

pytestmark = pytest.mark.real


async def cannot_start(home: Home) -> TandemError:
    with pytest.raises(TandemError) as failure:
        await Node.start(home, watch=quick_watch())
    assert failure.value.fix
    return failure.value


async def test_a_started_node_knows_itself_and_says_so(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        me = anna.state.me
        assert me is not None
        assert (me.name, me.home) == ("anna", str(tmp_path / "anna"))
        assert me.addresses[0].startswith("127.0.0.1:")
        assert me.hardware.cores >= 1 and me.versions.tandem
        assert anna.state.notices == ()
        state = await wait_for(anna, lambda s: s.me is not None and s.me.reading is not None)
        assert state.me is not None and state.me.reading is not None


async def test_each_reading_is_compared_with_the_charge_below_which_a_run_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Problem(code="battery-low", what="The battery is low.")

    def on_reading(self: Departure, reading: Reading, below_pct: int) -> Problem | None:
        return told if below_pct == 15 else None

    monkeypatch.setattr(Departure, "on_reading", on_reading)
    async with node(tmp_path, "anna", discovery=False) as anna:
        await wait_for(anna, lambda s: s.me is not None and s.me.reading is not None)
        assert not anna.state.notices
        await anna.submit(ChangeSettings(change=SettingsChange(leave_below_pct=15)))
        state = await wait_for(anna, lambda s: bool(s.notices))
        assert state.notices[0] == told


async def test_a_home_has_one_node_and_frees_it(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        failure = await cannot_start(anna.home)
        assert failure.code == "home-held"
        assert await anna.submit(GetState()) == StateNow(state=anna.state)
    async with node(tmp_path, "anna", discovery=False) as again:
        assert id_of(again) == id_of(anna)


async def test_broken_files_are_reported_and_it_starts_all_the_same(tmp_path: Path) -> None:
    home = home_of(tmp_path, "anna")
    home.settings.write_text("{")
    home.trust.write_text("not json")
    home.trust.chmod(0o600)
    (home.runs / "20260101-120000-9f3a01bc").mkdir()
    (home.runs / "20260101-120000-9f3a01bc/summary.json").write_text("no summary at all")
    started = await Node.start(home, watch=quick_watch())
    try:
        codes = {notice.code for notice in started.state.notices}
        assert {"settings-corrupt", "trust-corrupt", "history-incomplete"} <= codes
        assert all(notice.what and notice.fix for notice in started.state.notices)
    finally:
        await started.stop()


async def test_a_taken_port_is_reported_and_another_one_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        home = home_of(tmp_path, "anna", discovery=False)
        settings = Settings(name="anna", port=port, interfaces=("lo",), discovery=False)
        settings_file.write(home.settings, settings)
        started = await Node.start(home, watch=quick_watch())
        try:
            assert [notice.code for notice in started.state.notices] == ["port-taken"]
            assert started.state.me is not None
            assert not started.state.me.addresses[0].endswith(f":{port}")
        finally:
            await started.stop()


async def test_quit_answers_ends_the_node_and_is_heard(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        client = await Client.connect(anna.home)
        heard = Heard(anna)

        assert await client.submit(Quit()) == Done()
        await asyncio.wait_for(anna.wait_stopped(), 60)
        await asyncio.wait_for(client.wait_closed(), 60)

        assert heard.events[-1] == ev.NodeStopped()
        assert anna.state.stopped and client.state.stopped
        assert client.problem is None
        assert refusal(await anna.submit(StopRun())) == "ending"
        await client.close()


async def test_a_command_that_outlives_the_node_is_told_that_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import keras\n")
    reading, ended, read = threading.Event(), threading.Event(), planning.read_project

    def read_slowly(*arguments: Any) -> planning.LocalProject:
        reading.set()
        assert ended.wait(60)
        return read(*arguments)

    monkeypatch.setattr(planning, "read_project", read_slowly)
    async with node(tmp_path, "anna", discovery=False) as anna:
        preview = asyncio.create_task(
            anna.submit(PlanRun(spec=RunSpec(script=str(tmp_path / "train.py"), solo=True)))
        )
        assert await asyncio.to_thread(reading.wait, 60)
        await asyncio.wait_for(anna.stop(), 60)
        ended.set()
        assert refusal(await preview) == "ending"

    assert "PlanRun failed" not in (anna.home.logs / "tandem.log").read_text()


async def test_after_its_end_nothing_listens_and_no_task_is_left(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with node(tmp_path, "anna") as anna:
        port = anna._neighbours.port
        assert socket_path.find(anna.home).exists()
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)
    assert not socket_path.find(anna.home).exists()
    assert asyncio.all_tasks() - before == set()


async def test_a_part_that_never_ends_does_not_hold_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung: list[str] = []

    async def hang() -> None:
        hung.append("hung")
        await asyncio.Event().wait()

    async with node(tmp_path, "anna", part_ends_s=0.01, discovery=False) as anna:
        closing = anna._neighbours.close
        monkeypatch.setattr(anna._neighbours, "close", hang)
        await asyncio.wait_for(anna.stop(), 60)
        await closing()

    assert hung == ["hung"] and anna.state.stopped
    assert "the neighbours did not end" in (anna.home.logs / "tandem.log").read_text()
    async with node(tmp_path, "anna", discovery=False):
        pass


async def test_a_start_that_fails_halfway_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: object) -> None:
        raise TandemError(code="no-port", what="No port is free.", fix="End other programs.")

    before = asyncio.all_tasks()
    with monkeypatch.context() as broken:
        broken.setattr(neighbours.Neighbours, "listen", fail)
        assert (await cannot_start(home_of(tmp_path, "anna"))).code == "no-port"

    assert asyncio.all_tasks() - before == set()
    async with node(tmp_path, "anna", discovery=False):
        pass


async def test_telemetry_that_breaks_costs_only_its_readings(tmp_path: Path) -> None:
    def broken() -> Gpus:
        raise RuntimeError("a driver out of its mind")

    started = await Node.start(home_of(tmp_path, "anna", discovery=False), watch=Watch(find_gpus=broken))
    try:
        assert started.state.me is not None and started.state.me.hardware.cpu
        assert [notice.code for notice in started.state.notices] == ["internal"]
        assert "telemetry" in started.state.notices[0].what
    finally:
        await started.stop()
    assert "a driver out of its mind" in (started.home.logs / "tandem.log").read_text()


async def test_a_bug_in_tandem_gives_an_answer_and_a_traceback_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("a bug")

    async with node(tmp_path, "anna", discovery=False) as anna:
        monkeypatch.setattr(anna._neighbours.pairing, "cancel", broken)
        assert refusal(await anna.submit(CancelPairing())) == "internal"
        assert await anna.submit(GetState()) == StateNow(state=anna.state)
    log = (anna.home.logs / "tandem.log").read_text()
    assert "Traceback" in log and "ZeroDivisionError: a bug" in log


async def test_a_task_that_crashes_is_a_notice(tmp_path: Path) -> None:
    async def work() -> None:
        raise RuntimeError("a bug")

    async with node(tmp_path, "anna", discovery=False) as anna:
        anna._background.start("some work", work())
        state = await wait_for(anna, lambda s: bool(s.notices))
        assert state.notices[0].code == "internal"
        assert "some work" in state.notices[0].what


async def test_settings_that_change_at_the_same_moment_are_all_kept(tmp_path: Path) -> None:
    changes = (SettingsChange(theme="dark"), SettingsChange(name="Anna's"), SettingsChange(port=31999))
    async with node(tmp_path, "anna", discovery=False) as anna:
        await asyncio.gather(*(anna.submit(ChangeSettings(change=change)) for change in changes))
    kept, _ = settings_file.read(anna.home.settings)
    assert (kept.theme, kept.name, kept.port) == ("dark", "Anna's", 31999)


async def test_the_form_that_opens_and_each_chosen_script_make_a_trainer_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreseen: list[WarmTrainer] = []
    monkeypatch.setattr(WarmTrainer, "foresee", lambda warm: foreseen.append(warm))
    (tmp_path / "train.py").write_text("import keras\n")
    async with node(tmp_path, "anna", discovery=False) as anna:
        assert await anna.submit(ForeseeRun()) == Done()
        assert len(foreseen) == 1
        await anna.submit(AnalyseScript(path=str(tmp_path / "train.py")))
        assert len(foreseen) == 2
        monkeypatch.setattr(anna._runs.warm, "is_in_a_run", lambda: True)
        await anna.submit(ForeseeRun())
        assert len(foreseen) == 2, "the run's memory is its own"


async def test_storage_is_measured_and_cleared(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        come_in_part = anna.home.projects / "incoming" / ("a" * 64)
        come_in_part.mkdir(parents=True)
        (come_in_part / "0.part").write_bytes(bytes(2000))
        anna.home.received.mkdir()
        (anna.home.received / "report.html").write_bytes(bytes(30))
        measured = await anna.submit(MeasureStorage())
        assert isinstance(measured, StorageMeasured)
        assert (measured.projects_bytes, measured.reports_bytes) == (2000, 30)
        assert await anna.submit(Clear()) == Cleared(freed_bytes=2030)


async def test_the_doctor_looks_and_the_diagnostics_are_saved(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        answer = await anna.submit(RunDoctor())
        assert isinstance(answer, Findings)
        codes = {finding.code for finding in answer.findings}
        sealing = "sealed" if seals.find() else "not-sealed"
        assert {sealing, "key", "home", "port", "socket"} <= codes
        assert not {code for code in codes if code.startswith("check-")}
        saved = await anna.submit(SaveDiagnostics(path=str(tmp_path)))
        assert isinstance(saved, Saved) and Path(saved.path).exists()


async def test_a_deleted_socket_is_made_again_while_other_clients_stay_connected(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna:
        first = await Client.connect(anna.home)
        socket_path.find(anna.home).unlink()
        with pytest.raises(TandemError):
            await Client.connect(anna.home)

        assert await first.submit(Mend(code="socket-gone")) == Done()

        second = await Client.connect(anna.home)
        assert second.state.me == anna.state.me
        await first.close()
        await second.close()


def test_a_node_needs_neither_tensorflow_nor_qt_nor_numpy() -> None:
    code = """if True:
        import sys, core.node.node, core.node.client, core.node.conversation
        looked_for = ("tensorflow", "keras", "PySide6", "numpy", "jinja2", "zeroconf")
        print([name for name in looked_for if name in sys.modules])
    """
    program = [sys.executable, "-c", code]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)

    assert ended.stdout.strip() == "['zeroconf']"
