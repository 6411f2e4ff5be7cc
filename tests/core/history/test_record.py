from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from core.history.events_file import MOST_BYTES
from core.history.history import History
from core.history.read import (
    LOG_BYTES,
    MOST_POINTS,
    PEER_BYTES,
    PEER_POINTS,
    membership_for_peer,
    read_metrics,
    read_outcome,
    read_run,
    read_taken_s,
    read_words,
    reports_for_peer,
    uses_for_peer,
)
from core.history.record import RunRecord
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import Change, LaptopUsed, MembershipChanged
from core.vocabulary.manifest import Manifest, ProjectFile, manifest_of
from core.vocabulary.phases import Exit, Finished, Planning, Preparing, Stopped
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.progress import Best, EpochEnd, Expectation, LogLines, Progress, Summary
from core.vocabulary.readings import GpuReading, Reading
from core.vocabulary.run_folder import EVENTS, LATER, METRICS, PROJECT, SUMMARY, log_name
from core.vocabulary.waits import WaitsFor
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.samples import sample

PLAN = plan_of()
RUN = PLAN.run


class Kept:
    def __init__(self, folder: Path) -> None:
        self.history = History(folder)
        self.history.open()
        self.troubles: list[Problem] = []
        self.folder = folder / RUN
        entry = RunEntry(
            run=RUN, started_s=100.0, script="train.py", phase=Planning(), folder=str(self.folder)
        )
        self.record = RunRecord(
            self.folder, entry, ANNA, self.history, self.troubles.append, wall_clock=lambda: 160.0
        )

    def add(self, *events: ev.MirroredEvent) -> None:
        for event in events:
            self.record.add(event)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.record.close()
    kept.history.close()


def step(number: int) -> ev.MemberProgressed:
    progress = Progress(at_s=float(number), epoch=0, epochs=1, step=number, batch=number)
    return ev.MemberProgressed(run=RUN, device=ANNA, progress=progress)


def said(
    text: str, *, device: DeviceId = BEN, stream: str = "stdout", task: str = "worker:0"
) -> ev.MemberLogged:
    return ev.MemberLogged(run=RUN, device=device, lines=LogLines(task=task, stream=stream, text=text))


def test_a_run_is_kept_from_its_plan_to_its_end(kept: Kept) -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0, logs={"loss": 0.5})
    summary = Summary(epochs=1, steps=10)
    kept.add(
        ev.RunPlanned(plan=PLAN),
        ev.RunPhaseChanged(run=RUN, phase=Preparing()),
        step(0),
        ev.MemberEndedEpoch(run=RUN, device=BEN, epoch=epoch),
        ev.MemberEnded(run=RUN, device=BEN, task="worker:0", exit=Exit(reason="finished")),
        said("hello"),
        said("Nothing was shared.", stream="tandem"),
        ev.RunSummarised(run=RUN, summary=summary),
        ev.RunPhaseChanged(run=RUN, phase=Finished()),
    )
    (entry,) = kept.history.newest(5)
    assert entry.phase == Finished()
    assert entry.duration_s == 60.0
    assert entry.summary == summary
    assert entry.devices == ("Anna's", "Ben's")
    assert wire.from_json((kept.folder / SUMMARY).read_bytes(), RunEntry) == entry
    details = read_run(entry, kept.folder)
    assert details.plan == PLAN
    assert details.steps == {ANNA: (step(0).progress,)}
    assert details.epochs == {BEN: (epoch,)}
    assert "--- Ben's ---\nhello" in details.log
    assert "--- tandem ---\nNothing was shared." in details.log
    assert read_outcome(entry, kept.folder) == replace(details, steps={}, epochs={}, log="")


def test_the_loss_is_kept_in_a_few_points_for_the_list(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=PLAN))
    for number in range(1_000):
        progress = step(number).progress
        mean = {"loss": float("nan") if number == 7 else 2.0 / (1 + number)}
        for device in (ANNA, BEN):
            told = replace(progress, logs={"loss": 9.0}, recent=mean)
            kept.add(ev.MemberProgressed(run=RUN, device=device, progress=told))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    (entry,) = kept.history.newest(5)
    assert 24 <= len(entry.losses) <= 49, "of the chief alone"
    assert (entry.losses[0], entry.losses[-1]) == (2.0, 0.002)
    assert list(entry.losses) == sorted(entry.losses, reverse=True)
    old = wire.to_json(entry).replace(b'"losses":[', b'"unknown":[')
    assert wire.from_json(old, RunEntry) == replace(entry, losses=())


def test_measurements_are_recorded_at_once(kept: Kept) -> None:
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(43, 21))
    kept.add(ev.RunPlanned(plan=PLAN), ev.MemberMeasured(run=RUN, device=ANNA, expectation=expectation))
    (entry,) = kept.history.newest(5)
    assert entry.summary.expectation == expectation, "also of a run whose end nobody sees"
    assert read_run(entry, kept.folder).entry.summary.expectation == expectation
    assert b"member_measured" in (kept.folder / EVENTS).read_bytes()
    summary = Summary(epochs=1, expectation=expectation)
    kept.add(ev.RunSummarised(run=RUN, summary=summary), ev.RunPhaseChanged(run=RUN, phase=Finished()))
    assert kept.history.newest(5)[0].summary == summary


def test_this_laptops_own_output_is_recorded_only_by_its_trainer(kept: Kept) -> None:
    kept.add(said("mine", device=ANNA, task="chief:0"))
    assert not (kept.folder / "logs" / "chief-0.log").exists()


@pytest.mark.parametrize("task", ["../../evil", "a/b", "worker:0\x00", "x" * 500, ""])
def test_a_tasks_name_from_a_peer_never_becomes_a_path(kept: Kept, task: str) -> None:
    kept.add(said("hello", task=task))
    (log,) = (kept.folder / "logs").iterdir()
    assert log.name == log_name(task)
    assert log.read_bytes() == b"hello\n"


def test_a_full_disk_is_reported_once_and_nothing_is_raised(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("core.history.record.write_atomically", full)
    monkeypatch.setattr(Path, "open", full)
    kept.add(ev.RunPlanned(plan=PLAN), step(0), step(1), said("hello"))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Preparing()))
    assert [problem.code for problem in kept.troubles] == ["record-unwritten"]
    assert "No space left" in kept.troubles[0].what


def test_many_steps_are_thinned_and_half_a_line_is_left_out(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=PLAN))
    lines = b"".join(wire.to_json(step(number)) + b"\n" for number in range(3 * MOST_POINTS))
    (kept.folder / METRICS).write_bytes(lines + b'{"type":"member_prog')
    steps = read_run(kept.record.entry, kept.folder).steps[ANNA]
    assert MOST_POINTS // 2 <= len(steps) <= MOST_POINTS
    assert (steps[0].step, steps[-1].step) == (0, 3 * MOST_POINTS - 1)


def test_only_the_end_of_a_long_log_is_read(kept: Kept) -> None:
    for number in range(20):
        kept.add(said(f"{number} " * 4000), said(f"{number} " * 4000, task="worker:1"))
    log = read_run(kept.record.entry, kept.folder).log
    assert len(log) <= LOG_BYTES
    assert log.count("---") == 4
    assert log.rstrip().endswith("19")


def test_a_folder_that_is_gone_leaves_the_entry(kept: Kept, tmp_path: Path) -> None:
    details = read_run(kept.record.entry, tmp_path / "gone")
    assert details.entry == kept.record.entry
    assert details.plan is None
    assert details.log == ""


def test_the_files_that_a_run_begins_with_are_kept_beside_it(kept: Kept) -> None:
    project = manifest_of("train.py", [ProjectFile(path="train.py", size=3, sha256="a" * 64)])
    kept.record.keep_project(project)
    assert wire.from_json((kept.folder / PROJECT).read_bytes(), Manifest) == project
    assert not kept.troubles


def test_a_resumed_run_has_the_earlier_runs_numbers_up_to_its_checkpoint(kept: Kept, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    told = [replace(step(number).progress, done=number + 1, epoch=number // 4) for number in range(12)]
    told = [replace(each, batch=each.step % 4) for each in told]
    ends = [
        EpochEnd(at_s=9.0, epoch=number, epochs=3, step=4 * number + 3, seconds=1.0) for number in range(3)
    ]
    lines = [ev.MemberProgressed(run=RUN, device=ANNA, progress=each) for each in told]
    more = [ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=each) for each in ends]
    (before / METRICS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in (*lines, *more)))
    kept.record.go_on_from(before, Moment(step=6, epoch=1, batch=2))
    kept.add(ev.MemberProgressed(run=RUN, device=ANNA, progress=told[6]))
    kept.record.close()
    read = read_run(kept.record.entry, kept.folder)
    assert [each.step for each in read.steps[ANNA]] == [0, 1, 2, 3, 4, 5, 6]
    assert [each.epoch for each in read.epochs[ANNA]] == [0]


def test_a_resumed_run_has_what_others_recorded_after_this_laptop_was_lost(
    kept: Kept, tmp_path: Path
) -> None:
    lost, other = tmp_path / "lost", tmp_path / "other"
    told = [replace(step(number), device=BEN) for number in range(12)]
    told = [replace(each, progress=replace(each.progress, done=each.progress.step + 1)) for each in told]
    for folder, reports in ((lost, told[:5]), (other, told)):
        folder.mkdir()
        (folder / METRICS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in reports))
    later = reports_for_peer(other, Moment(step=3, batch=3))
    assert later == tuple(told[3:])
    (lost / LATER).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in later))
    kept.record.go_on_from(lost, Moment(step=9, batch=9))
    kept.record.close()
    read = read_run(kept.record.entry, kept.folder)
    assert [each.step for each in read.steps[BEN]] == [0, 1, 2, 3, 4, 5, 6, 7, 8], "each once"


def test_a_resumed_run_has_departures_and_arrivals_after_this_laptop_was_lost(
    kept: Kept, tmp_path: Path
) -> None:
    """The other laptop's clock is an hour ahead. What both recorded is there once."""
    lost, other = tmp_path / "lost", tmp_path / "other"
    here: list[tuple[DeviceId, Change]] = [(ANNA, "joined"), (BEN, "joined")]
    there: list[tuple[DeviceId, Change]] = [*reversed(here), (ANNA, "lost"), (BEN, "joined")]
    first = step(0)
    first = replace(first, progress=replace(first.progress, done=1))
    for folder, changes, ahead_s in ((lost, here, 0.0), (other, there, 3600.0)):
        folder.mkdir()
        (folder / METRICS).write_bytes(wire.to_json(first) + b"\n")
        turns = [
            MembershipChanged(device=device, change=change, at_s=99.0 + ahead_s, second=float(second))
            for second, (device, change) in enumerate(changes)
        ]
        (folder / EVENTS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in turns))
    told = membership_for_peer(other)
    assert [each.at_s - first.progress.at_s for each in told] == [0.0, 1.0, 2.0, 3.0]
    (lost / LATER).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in told))
    kept.record.go_on_from(lost, Moment(step=9, batch=9), back=True)
    for device in (ANNA, BEN):
        kept.add(ev.MemberPhaseChanged(run=RUN, device=device, phase="training"))
    kept.record.close()
    found = read_run(kept.record.entry, kept.folder).membership
    assert [(each.device, each.change, each.second) for each in found[:4]] == [
        (ANNA, "joined", 0.0),
        (BEN, "joined", 1.0),
        (ANNA, "lost", 2.0),
        (BEN, "joined", 3.0),
    ]
    assert [(each.device, each.change) for each in found[4:]] == [(ANNA, "back"), (BEN, "joined")]


def test_a_resumed_run_has_the_load_after_this_laptop_was_lost(kept: Kept, tmp_path: Path) -> None:
    """The other laptop joined later, so its axis begins later. What both recorded is there once."""
    lost, other = tmp_path / "lost", tmp_path / "other"
    told = [replace(step(number), device=BEN) for number in range(12)]
    told = [
        replace(each, progress=replace(each.progress, done=number + 1, at_s=1000.0 + 10 * number))
        for number, each in enumerate(told)
    ]

    def load(at_s: float, first_s: float) -> LaptopUsed:
        return LaptopUsed(device=BEN, second=at_s - first_s, cpu_pct=at_s % 97)

    for folder, first, end in ((lost, 0, 5), (other, 2, 12)):
        folder.mkdir()
        first_s = told[first].progress.at_s
        lines = [line for each in told[first:end] for line in (each, load(each.progress.at_s + 5.0, first_s))]
        (folder / METRICS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in lines))
    later = (
        *reports_for_peer(other, Moment(step=3, batch=3)),
        *uses_for_peer(other, Moment(step=3, batch=3)),
    )
    (lost / LATER).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in later))
    kept.record.go_on_from(lost, Moment(step=9, batch=9))
    kept.record.close()
    read = read_run(kept.record.entry, kept.folder)
    assert [each.second for each in read.uses[BEN]] == [5.0, 15.0, 25.0, 35.0, 45.0, 55.0, 65.0, 75.0]
    assert [each.cpu_pct for each in read.uses[BEN]] == [
        (1000.0 + each.second) % 97 for each in read.uses[BEN]
    ]


def test_parts_of_a_record_for_another_laptop_fit_into_a_message(tmp_path: Path) -> None:
    logs = {f"metric-{number}": 0.123456789 for number in range(10)}
    told = [
        replace(each, device=device, progress=replace(each.progress, logs=logs))
        for each in map(step, range(4000))
        for device in (ANNA, BEN)
    ]
    (tmp_path / METRICS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in told))
    found = reports_for_peer(tmp_path, Moment())
    assert 100 < len(found) <= PEER_POINTS and len(wire.to_msgpack(found)) <= PEER_BYTES
    of_ben = [each.progress.step for each in found if isinstance(each, ev.MemberProgressed)][1::2]
    assert of_ben[0] == 0 and of_ben[-1] == 3999 and len(of_ben) == len(found) // 2


def test_a_run_resumed_automatically_has_the_marks_of_the_runs_before(kept: Kept, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    changes: list[tuple[DeviceId, Change]] = [(ANNA, "joined"), (BEN, "joined"), (BEN, "left")]
    turns = [MembershipChanged(device=device, change=change, at_s=99.0) for device, change in changes]
    (before / EVENTS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in turns))
    entry = replace(kept.record.entry, duration_s=30.0, phase=Stopped(by="anna", goes_on=True, back=("ben",)))
    (before / SUMMARY).write_bytes(wire.to_json(entry))
    kept.record.go_on_from(before, Moment(step=6, epoch=1, batch=2))
    for device in (ANNA, BEN):
        kept.add(ev.MemberPhaseChanged(run=RUN, device=device, phase="training"))
    kept.add(ev.RunSummarised(run=RUN, summary=Summary(total_s=12.5)))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    kept.record.close()
    found = read_run(kept.record.entry, kept.folder).membership
    assert [(each.device, each.change) for each in found[3:]] == [(ANNA, "joined"), (BEN, "back")]
    assert list(found[:3]) == turns and kept.record.entry.duration_s == 12.5


RESUMED = Resumption(run=RunId("before"), checkpoint=PLAN.project, moment=Moment(step=6), took_s=30.0)


def test_a_run_whose_starter_was_lost_takes_as_long_as_all_its_parts(kept: Kept) -> None:
    kept.record._wall_clock = lambda: 112.5
    kept.add(ev.RunPlanned(plan=replace(PLAN, resume=RESUMED)))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Stopped(by="ben", goes_on=True)))
    kept.record.close()
    assert read_taken_s(kept.folder) == kept.record.entry.duration_s == 42.5


def test_a_run_that_a_crash_cut_off_took_until_its_last_record(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=replace(PLAN, resume=RESUMED)), step(0))
    kept.record.close()
    for name, until_s in ((METRICS, 125.0), (EVENTS, 110.0)):
        (kept.folder / name).touch()
        os.utime(kept.folder / name, (until_s, until_s))
    assert read_taken_s(kept.folder) == 55.0
    again = History(kept.folder.parent)
    again.open()
    assert again.find(RUN).duration_s == 55.0


def test_every_member_records_the_starters_times(kept: Kept) -> None:
    out = Summary(total_s=12.5, started_s=97.0)
    kept.add(ev.RunSummarised(run=RUN, summary=out), ev.RunPhaseChanged(run=RUN, phase=Finished()))
    assert (kept.record.entry.started_s, kept.record.entry.duration_s) == (97.0, 12.5)


def test_an_absurd_clock_is_ignored(kept: Kept) -> None:
    kept.add(ev.RunSummarised(run=RUN, summary=Summary(total_s=12.5, started_s=9e9)))
    assert kept.record.entry.started_s == 100.0


def test_the_best_epochs_of_the_chief_are_kept_while_the_run_is_under_way(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=PLAN))
    for number, (chiefs, others) in enumerate(((0.9, 0.1), (0.4, 0.1), (0.6, 0.1))):
        for device, loss in ((ANNA, chiefs), (BEN, others)):
            logs = {"val_loss": loss}
            end = EpochEnd(at_s=1.0, epoch=number, epochs=3, step=number, seconds=1.0, logs=logs)
            kept.add(ev.MemberEndedEpoch(run=RUN, device=device, epoch=end))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    assert kept.history.find(RUN).best == {"val_loss": Best(value=0.4, epoch=1)}


def test_a_name_given_during_the_run_outlasts_its_end(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=PLAN), ev.RunPhaseChanged(run=RUN, phase=Preparing()))
    kept.record.label("Warm start", "with ben")
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))
    entry = kept.history.find(RUN)
    assert (entry.name, entry.note) == ("Warm start", "with ben")


def test_the_laptops_load_is_recorded_from_the_first_report_on(kept: Kept) -> None:
    clock = [160.0]
    kept.record._wall_clock = lambda: clock[0]
    reading = Reading(
        at_s=5.0,
        cpu_pct=40.04,
        memory_used_bytes=1,
        memory_total_bytes=2,
        sent_bytes_s=0.0,
        received_bytes_s=0.0,
        gpus=(GpuReading(name="one", use_pct=80.0), GpuReading(name="two", use_pct=90.0)),
    )
    kept.add(ev.RunPlanned(plan=PLAN))
    kept.record.note_use(ANNA, reading)
    kept.add(step(0))
    clock[0] = 163.5
    kept.record.note_use(ANNA, reading)
    kept.record.note_use(DeviceId("f" * 64), reading)
    kept.record.note_use(BEN, replace(reading, gpus=()))
    kept.record.close()
    details = read_run(kept.record.entry, kept.folder)
    assert details.uses == {
        ANNA: (LaptopUsed(device=ANNA, second=3.5, cpu_pct=40.0, gpu_pct=85.0),),
        BEN: (LaptopUsed(device=BEN, second=3.5, cpu_pct=40.0),),
    }, "nothing before the axis began, and nobody who is not in the run"
    assert len(details.steps[ANNA]) == 1
    kinds = [type(event) for event in read_metrics(kept.folder)]
    assert kinds == [ev.MemberProgressed, LaptopUsed, LaptopUsed]


def test_arrivals_and_departures_are_recorded_with_their_time(kept: Kept) -> None:
    clock = [160.0]
    kept.record._wall_clock = lambda: clock[0]
    away = WaitsFor(device=BEN, cause="away", lasted_s=10.0)
    kept.add(
        ev.RunPlanned(plan=PLAN),
        ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training"),
        step(0),
    )
    clock[0] = 170.0
    kept.add(ev.WaitingChanged(run=RUN, waits=(away,)))
    clock[0] = 200.0
    kept.add(ev.WaitingChanged(run=RUN))
    kept.record.close()
    found = read_run(kept.record.entry, kept.folder).membership
    assert found == (
        MembershipChanged(device=BEN, change="joined", at_s=160.0),
        MembershipChanged(device=BEN, change="away", at_s=170.0, second=10.0),
        MembershipChanged(device=BEN, change="back", at_s=200.0, second=40.0),
    )


def test_a_resumed_runs_laptops_are_on_the_axis_of_the_whole_training(kept: Kept) -> None:
    """Its record begins with the earlier run's reports, by the chief's clock of that time."""
    clock = [5_000.0]
    kept.record._wall_clock = lambda: clock[0]
    before = [
        replace(step(n), progress=replace(step(n).progress, at_s=100.0 + n, done=n + 1)) for n in (0, 1)
    ]
    old = kept.folder.parent / "before"
    old.mkdir()
    used = LaptopUsed(device=ANNA, second=0.5, cpu_pct=20.0)
    later = replace(before[1], progress=replace(before[1].progress, batch=2, step=2, done=3))
    lines = (before[0], used, before[1], later, replace(used, second=2.5))
    (old / METRICS).write_bytes(b"".join(wire.to_json(each) + b"\n" for each in lines))
    kept.add(ev.RunPlanned(plan=PLAN))
    kept.record.go_on_from(old, Moment(step=2, batch=2))
    reading = sample(Reading)
    kept.record.note_use(ANNA, reading)  # TensorFlow still starts
    clock[0] = 5_060.0
    progress = replace(step(2).progress, at_s=200.0, done=3)
    kept.add(ev.MemberProgressed(run=RUN, device=ANNA, progress=progress))
    clock[0] = 5_070.0
    kept.record.note_use(ANNA, reading)
    kept.record.close()
    details = read_run(kept.record.entry, kept.folder)
    assert [each.at_s for each in details.steps[ANNA]] == [100.0, 101.0, 200.0]
    assert [used.second for used in details.uses[ANNA]] == [0.5, 110.0], "ten seconds after the report of 200"


def test_a_flood_of_events_leaves_the_first_the_newest_and_one_sentence(kept: Kept) -> None:
    kept.add(ev.RunPlanned(plan=PLAN), ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training"))
    words = "x" * 4_000
    for done in range(6_000):
        kept.add(ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training", words=words, done=done))
    kept.add(ev.RunPhaseChanged(run=RUN, phase=Finished()))

    events = (kept.folder / EVENTS).read_bytes()
    assert len(events) <= MOST_BYTES
    assert [each.change for each in read_run(kept.record.entry, kept.folder).membership] == ["joined"]
    assert b'"done":5999' in events and events.endswith(b'"phase":{"type":"finished"}}\n')
    assert read_words(kept.folder) == ["Too many events for a record: the first and the newest are here."]


def test_logs_of_many_tasks_are_few_open_files_and_bounded(kept: Kept) -> None:
    before = psutil.Process().num_fds()
    for number in range(100):
        kept.add(said("hello", task=f"worker:{number}"))
    assert psutil.Process().num_fds() - before <= 20
    kept.add(*[said("x" * 20_000)] * 700)
    logs = kept.folder / "logs"
    assert sum(path.stat().st_size for path in logs.glob("worker-0.log*")) < 9_000_000
    assert read_words(kept.folder) == ["Too much output for a record: worker-0.log lacks its beginning."]


def test_the_end_of_a_run_on_a_full_disk_is_known_after_a_restart(kept: Kept, tmp_path: Path) -> None:
    kept.folder.write_text("in the way of the run's folder")
    kept.add(
        ev.RunPlanned(plan=PLAN),
        ev.RunPhaseChanged(run=RUN, phase=Preparing()),
        ev.RunPhaseChanged(run=RUN, phase=Finished()),
    )
    assert [problem.code for problem in kept.troubles] == ["record-unwritten"]
    kept.folder.unlink()
    kept.record.close()
    kept.history.close()
    (entry,) = History(tmp_path).newest(5)
    assert isinstance(entry.phase, Finished) and entry.device_ids == (ANNA, BEN)
