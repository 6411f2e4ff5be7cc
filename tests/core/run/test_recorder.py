from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.record import RunRecord
from core.run import recorder
from core.run.recorder import Recorder, machines
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import ProjectId, RunId
from core.vocabulary.laptops import Machine
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.state import Device, Me, State
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.run.told import epochs_of
from tests.core.samples import sample

PLAN = plan_of()
RUN = PLAN.run


async def opened(folder: Path, troubles: list[Problem]) -> Recorder:
    records = Recorder(folder, folder.with_name("sweeps"), ANNA, troubles.append)
    await records.open()
    return records


def record_a_run(records: Recorder) -> None:
    records.begin(PLAN, "/home/anna/train.py")
    records.record(ev.RunPlanned(plan=PLAN))
    records.record(ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epochs_of(1)[0]))
    records.record(ev.RunPhaseChanged(run=RUN, phase=Finished()))


async def test_a_run_that_ends_leaves_its_report_before_the_node_has_closed(tmp_path: Path) -> None:
    troubles: list[Problem] = []
    records = await opened(tmp_path, troubles)
    record_a_run(records)
    assert not records.is_recording(RUN)
    await records.close()
    assert troubles == []
    again = await opened(tmp_path, troubles)
    details = await again.find(RUN)
    assert details.report == str(tmp_path / RUN / "report.html")
    assert Path(details.report).is_file()
    await again.close()


async def test_waiting_for_a_report_lasts_until_it_is_written(tmp_path: Path) -> None:
    records = await opened(tmp_path, [])
    record_a_run(records)
    await records.reports_written()
    assert Path((await records.find(RUN)).report).is_file()
    await records.close()


async def test_the_history_answers_and_the_next_run_is_recorded_while_a_report_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(record: RunRecord) -> None:
        loop.call_soon_threadsafe(made.set)
        assert go_on.wait(60)

    monkeypatch.setattr(recorder, "write_report", slow)
    records = await opened(tmp_path, [])
    record_a_run(records)
    await asyncio.wait_for(made.wait(), 60)
    (entry,) = (await records.newest(5)).runs
    assert entry.phase == Finished()
    assert (await records.find(RUN)).report == ""
    go_on.set()
    await records.close()


async def test_a_flood_takes_no_memory_while_the_disk_is_slow_and_the_end_is_recorded(tmp_path: Path) -> None:
    troubles: list[Problem] = []
    records, go_on = await opened(tmp_path, troubles), threading.Event()
    records.begin(PLAN, "/home/anna/train.py")
    records.record(ev.RunPlanned(plan=PLAN))
    records._disk.post(go_on.wait, 60)
    for number in range(3 * recorder.MOST_WAITING):
        event = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training", words="x" * 4_000, done=number)
        records.record(event)
    assert records._disk.waiting <= recorder.MOST_WAITING + 1
    records.record(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    go_on.set()
    assert (await records.find(RUN)).entry.phase == Finished()
    await records.close()
    assert [problem.what for problem in troubles] == [
        f"The history of the run {RUN} has gaps: the disk does not keep up."
    ]


async def test_a_report_that_cannot_be_made_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(record: RunRecord) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(recorder, "write_report", broken)
    records = await opened(tmp_path, [])
    record_a_run(records)
    await records.close()
    assert "a mistake of ours" in caplog.text


async def test_a_name_given_afterwards_stands_in_the_report_too(tmp_path: Path) -> None:
    records = await opened(tmp_path, [])
    record_a_run(records)
    await records.label(RUN, "Warm <start>", "half the rate")
    assert (await records.newest(1)).runs[0].name == "Warm <start>"
    await records.close()
    text = (tmp_path / RUN / "report.html").read_text()
    assert "<h1>Warm &lt;start&gt;</h1>" in text
    assert "half the rate" in text


async def test_the_run_that_is_resumed_at_present_is_not_deleted(tmp_path: Path) -> None:
    records = await opened(tmp_path, [])
    record_a_run(records)
    resumption = Resumption(run=RUN, checkpoint=ProjectId("e" * 64), moment=Moment())
    again = replace(PLAN, run=RunId("20261122-101010-00000000"), resume=resumption)
    records.begin(again)
    records.record(ev.RunPlanned(plan=again))
    with pytest.raises(TandemError) as caught:
        await records.delete(RUN)
    assert caught.value.code == "run-resumed"
    records.record(ev.RunPhaseChanged(run=again.run, phase=Finished()))
    await records.delete(RUN)
    assert [entry.run for entry in (await records.newest(5)).runs] == [again.run]
    await records.close()


async def test_the_laptops_hardware_is_recorded_if_it_is_known(tmp_path: Path) -> None:
    records = await opened(tmp_path, [])
    here = sample(Me)
    ben = Device(device=BEN, name="Ben's", versions=here.versions)
    state = State(me=replace(here, device=ANNA), devices={BEN: ben})
    records.begin(PLAN, state=state)
    records.record(ev.RunPlanned(plan=PLAN))
    records.record(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    entry = (await records.newest(1)).runs[0]
    assert entry.machines == {
        ANNA: Machine(versions=here.versions, hardware=here.hardware),
        BEN: Machine(versions=here.versions),
    }
    assert machines(PLAN, State()) == {}, "of laptops that were never linked"
    await records.close()
