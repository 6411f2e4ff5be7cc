"""A run during and after training."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QUrl
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.models.headline import Figure
from app.models.laptop_rows import LaptopRow
from app.views.train import TrainView
from app.views.train_live import TrainLive
from app.widgets.flow import Flow
from app.widgets.run_progress import RunProgress
from core.report.points import CPU_USE, GPU_USE, USES, CurveKey
from core.run.departure import left
from core.telemetry.nvidia import Nvidia
from core.vocabulary import events as ev
from core.vocabulary.answers import PlanMade, Refused, RunDetails, RunEntry
from core.vocabulary.commands import (
    AddLaptops,
    AnalyseScript,
    FindCheckpoints,
    ForeseeRun,
    GetRun,
    GoOnWaiting,
    LeaveRun,
    PlanRun,
    StartRun,
    StopRun,
)
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.phases import Failed, Finished, MemberPhase, Starting, Stopped, Stopping, Training
from core.vocabulary.plan import Moment, Plan, Resumption, RunSpec, TrialOf
from core.vocabulary.progress import Diverged, LogLines, Settled
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from core.vocabulary.waits import WaitsFor
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.core.fake_node import ME, OTHER, started
from tests.core.telemetry.fake_nvml import FakeNvml

LIMIT_MS = 60_000
LOSS = CurveKey(DeviceId(""), "loss", False)


def made_view(qtbot: QtBot, bridge: Bridge) -> TrainView:
    view = TrainView(bridge)
    qtbot.addWidget(view)
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    view.resize(1000, 900)
    return view


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> Iterator[TrainView]:
    view = made_view(qtbot, bridge)
    view.show_state(core.state, ())
    view.show()
    yield view
    view.hide()


@pytest.fixture
def live(view: TrainView) -> TrainLive:
    return view.live


def test_a_trainer_is_made_ready_whenever_the_screen_is_opened(core: FakeCore, view: TrainView) -> None:
    assert core.asked(ForeseeRun) == [ForeseeRun()]
    view.hide()
    view.show()
    assert len(core.asked(ForeseeRun)) == 2


def test_a_run_comes_to_the_front_by_itself(core: FakeCore, view: TrainView, live: TrainLive) -> None:
    assert view.pages.currentWidget() is view.setup
    core.happen(*world.linked(), *world.begun()[:1])
    assert view.pages.currentWidget() is live
    assert live.page.title.text() == "digits.py"
    assert live.progress.state.text() == "Planning…"


def test_progress_is_said_in_words_and_by_a_bar(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun())
    progress = live.progress
    core.happen(world.progressed(ME, world.progress(39)))
    assert progress.figures[2].figure == Figure("Time left", "–", "epoch 2 of 8"), (
        "nothing before it is known"
    )
    for step in range(40, 46):
        core.happen(world.progressed(ME, world.progress(step)))
    assert progress.state.text() == "Training"
    qtbot.waitUntil(progress.step.isVisible, timeout=LIMIT_MS)
    assert progress.step.text() == "Epoch 2/8, step 23/23", "the rate is among the figures"
    assert [figure.figure[:3] for figure in progress.figures] == [
        ("Loss, this epoch", "0.500", ""),
        ("Accuracy, this epoch", "0.833", ""),
        ("Time left", "0:14", "epoch 2 of 8"),
        ("Speed", "640", "samples/s"),
    ]
    assert progress.bar.value() == 250
    assert progress.members[OTHER].text() == "Bob's laptop (25 % of each batch): training"


def test_what_is_expected_is_reported_under_why_as_soon_as_it_is_measured(
    core: FakeCore, live: TrainLive
) -> None:
    core.happen(*world.linked(), *world.begun())
    assert not live.progress.why.isVisible()
    core.happen(world.measured())
    assert live.progress.why.isVisible()
    assert not live.progress.expected.isVisible(), "prose is for those who ask"
    live.progress.why.head.click()
    assert live.progress.expected.isVisible()
    assert live.progress.expected.text() == (
        "Two laptops: about 1.2× as fast as here alone; "
        "22 % of each step is network transfer (1.2 MB each way)."
    )
    assert not live.progress.advice.isVisible()
    next_one = replace(world.plan(), run=RunId("20261121-201204-9f3a01bd"))
    core.happen(*world.finished(), ev.RunPlanned(plan=next_one))
    assert not live.progress.why.isVisible() and not live.progress.why.is_open, "that of the run before"


def test_a_loss_that_became_nan_is_said_beside_stop_and_in_amber_at_the_end(
    core: FakeCore, live: TrainLive
) -> None:
    lost = Diverged(value="NaN", epoch=30, step=700)
    core.happen(*world.linked(), *world.begun())
    core.happen(world.progressed(ME, replace(world.progress(701), diverged=lost, logs={})))
    assert live.progress.held.text().startswith("Loss became NaN in epoch 31. Stop it, then use a smaller")
    assert live.stop.isVisible()
    points = next(line for key, line in live.points.curves.items() if key.metric == "loss")
    assert points.bad == [0], "it is marked on the plot"
    core.happen(*world.finished(replace(world.SUMMARY, diverged=lost)))
    assert live.outcome.head.text() == "Finished, but the loss became NaN in epoch 31"
    assert live.outcome.head.property("kind") == "warning-heading"


def test_refused_arguments_are_quoted_and_edited_by_one_click(
    core: FakeCore, view: TrainView, live: TrainLive
) -> None:
    words = "train.py: error: unrecognized arguments: --epoch 3"
    refused = Problem(code="script-arguments", what=words, fix="Edit the arguments and train again.")
    entry = replace(world.entry(last=Failed(problem=refused)), run=world.RUN)
    core.answers[GetRun] = RunDetails(entry=entry)
    core.happen(*world.linked(), *world.begun(), *world.finished(last=Failed(problem=refused)))
    core.flush()
    assert live.outcome.again.text() == "Edit arguments"
    live.outcome.again.click()
    assert view.setup.isVisible() and view.setup.arguments.hasFocus()
    assert live.outcome.problem.problem == refused


def test_a_run_is_smoothed_as_the_user_chose_last(core: FakeCore, live: TrainLive) -> None:
    core.happen(ev.SettingsChanged(settings=Settings(smoothing=0.6)), *world.begun())
    assert live.charts.bar.look.smoothing == 0.6


def test_what_would_help_is_reported_under_why(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun())
    live.progress.why.head.setChecked(True)
    core.happen(world.measured(replace(world.EXPECTED, step_s=0.12, wire_s=0.07)))
    assert "1.2× slower than here alone" in live.progress.expected.text()
    assert live.progress.advice.isVisible()
    assert live.progress.advice.text().startswith("Use a cable, a faster network or a larger batch_size")
    assert "meet rarely (Options: on slow networks, meet rarely: about" in live.progress.advice.text()


def test_what_a_result_advises_is_one_click_away(core: FakeCore, view: TrainView, live: TrainLive) -> None:
    slow = replace(world.EXPECTED, alone_s=(0.1, 0.1), step_s=0.12, wire_s=0.07)
    summary = replace(world.SUMMARY, expectation=slow, settled=Settled(step_s=0.12, samples_s=500.0))
    spec = RunSpec(script="/home/ada/digits/digits.py", devices=(OTHER,), arguments=("--epochs", "3"))
    entry = replace(world.entry(spec=spec), run=world.RUN, summary=summary)
    core.answers[GetRun] = RunDetails(entry=entry, plan=world.plan())
    core.happen(*world.linked(), *world.begun(), *world.finished(summary))
    core.flush()
    live.outcome.more.head.click()
    found = [each for each in live.outcome.findChildren(QPushButton, "advised") if each.isVisible()]
    assert [each.text().partition(" (")[0] for each in found] == [
        "Send half the bytes",
        "Send 8-bit numbers",
        "Meet rarely",
        "Train on this laptop alone",
    ]
    found[0].click()
    assert view.setup.isVisible() and view.setup.draft.options.wire == "bf16"
    assert view.setup.draft.arguments == "--epochs 3"


def rarely_is_offered(core: FakeCore, live: TrainLive, plan: Plan | None = None) -> None:
    core.happen(*world.linked(), *world.begun(plan), world.progressed(ME, world.progress(1)))
    live.progress.why.head.setChecked(True)
    core.happen(world.measured(replace(world.EXPECTED, step_s=0.3, wire_s=0.25)))


def test_where_rare_meetings_are_offered_one_click_stops_the_run_and_begins_it_anew_with_them(
    core: FakeCore, live: TrainLive
) -> None:
    spec = RunSpec(script="/home/ada/digits/digits.py", seed=7, resume=RunId("earlier"))
    entry = replace(world.entry(spec=spec, last=Stopped(by="here")), run=world.RUN)
    core.answers[GetRun] = world.details(entry)
    problem = Problem(code="device-busy", what="Bob's laptop is in another run.", fix="Wait.")
    core.answers[StartRun] = Refused(problem=problem)
    rarely_is_offered(core, live)
    assert live.progress.rarely.isVisible()
    live.progress.rarely.click()
    live.progress.rarely.click()
    assert core.asked(StopRun) == [StopRun()], "a second one would end it now"
    core.happen(world.phase(Stopping()))
    assert not live.progress.rarely.isVisible() and not core.asked(StartRun)
    core.happen(*world.finished(last=Stopped(by="here")))
    core.flush()  # its record is read
    core.flush()
    assert core.asked(StartRun) == [StartRun(spec=replace(spec, devices=(OTHER,), sync="rare", resume=None))]
    assert live.outcome.not_started.problem == problem


def test_a_run_that_finished_before_it_could_stop_does_not_begin_anew(
    core: FakeCore, live: TrainLive
) -> None:
    entry = replace(world.entry(spec=RunSpec(script="/home/ada/digits/digits.py")), run=world.RUN)
    core.answers[GetRun] = world.details(entry)
    rarely_is_offered(core, live)
    live.progress.rarely.click()
    core.happen(*world.finished())
    core.flush()
    assert not core.asked(StartRun)


@pytest.mark.parametrize("starter", [ME, OTHER])
def test_only_where_the_run_was_started_is_there_a_button_for_rare_meetings(
    core: FakeCore, live: TrainLive, starter: DeviceId
) -> None:
    rarely_is_offered(core, live, replace(world.plan(), starter=starter))
    assert live.progress.advice.isVisible()
    assert live.progress.rarely.isVisible() is (starter == ME)
    core.happen(world.measured())
    assert not live.progress.rarely.isVisible(), "exact steps gain nearly as much"
    core.happen(world.measured(replace(world.EXPECTED, step_s=0.4, wire_s=0.25)))
    assert "meet rarely" not in live.progress.advice.text(), "one laptop alone would be faster"
    assert not live.progress.rarely.isVisible()


def test_the_header_says_how_much_faster_than_this_laptop_alone(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), world.measured())
    speed = live.progress.figures[3]
    core.happen(world.progressed(ME, replace(world.progress(45), step_s=0.05)))
    assert speed.figure == Figure("Speed", "2.0×", "as fast as this laptop alone")
    core.happen(world.progressed(ME, replace(world.progress(46), step_s=0.05)))
    core.happen(world.progressed(ME, replace(world.progress(47), step_s=9.0)))
    assert speed.figure.value == "2.0×", "one slow step is not the speed"
    for number in range(48, 52):
        core.happen(world.progressed(ME, replace(world.progress(number), step_s=0.5)))
    assert speed.figure == Figure("Speed", "5.0× slower", "than this laptop alone", "warning")
    assert speed.accessibleName() == "Speed 5.0× slower than this laptop alone"


def test_the_start_is_shown_step_by_step_with_what_it_waits_for(core: FakeCore, live: TrainLive) -> None:
    def waits(device: DeviceId, phase: MemberPhase, done: int = 0) -> None:
        total = 40 if done else 0
        core.happen(ev.MemberPhaseChanged(run=world.RUN, device=device, phase=phase, done=done, total=total))

    progress = live.progress
    core.happen(*world.linked(), *world.begun()[:2])
    waits(ME, "prepared")
    waits(OTHER, "consent")
    assert progress.allow.isVisible()
    assert progress.allow.text() == "Press Allow on Bob's laptop"
    assert not progress.awaited.isVisible(), "it is said once"
    assert [step.state for step in progress.stepper.steps] == ["now", "ahead", "ahead", "ahead", "ahead"]
    assert progress.stepper.text().startswith("Allowed under way, Files to come")
    waits(OTHER, "receiving", done=30)
    assert not progress.allow.isVisible()
    assert progress.awaited.text() == "Waiting for the files to reach Bob's laptop (75 % of 40 bytes)"
    core.happen(world.phase(Starting()))
    waits(ME, "training")
    waits(OTHER, "training")
    assert progress.awaited.text() == "Waiting for the first step: the model is being built"
    assert [step.state for step in progress.stepper.steps] == ["done", "done", "done", "done", "now"]
    live.grab()
    core.happen(world.phase(Training()))
    assert not progress.stepper.isVisible() and not progress.awaited.isVisible()


def test_on_the_laptop_that_is_asked_nobody_is_sent_to_itself(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun()[:2])
    core.happen(ev.MemberPhaseChanged(run=world.RUN, device=ME, phase="consent"))
    assert not live.progress.allow.isVisible()


def test_gpu_use_is_in_the_laptops_row_and_under_the_loss(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    """The driver's values go through the real reader of graphics cards."""
    cards = Nvidia.open(FakeNvml())
    assert isinstance(cards, Nvidia)
    busy = world.reading(gpus=cards.read())
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)))
    core.happen(world.told(ME, busy), world.told(OTHER, world.reading(gpus=(world.gpu(80),))))
    mine, other = live.progress.members[ME].row, live.progress.members[OTHER].row
    assert mine is not None and other is not None
    assert mine.gpu.part == pytest.approx(0.405), "the mean of its two cards"
    assert (other.gpu.words, other.gpu.note) == ("80 %", "5.4 of 8.6 GB · 71 °C · 60 W")
    assert (other.cpu.words, other.network) == ("40 %", ("↑ 2.5 MB/s", "↓ 3.5 MB/s"))
    assert list(live.points.curves[CurveKey(OTHER, GPU_USE, False)].values) == [80]
    assert not live.no_gpu.isVisible()
    qtbot.waitUntil(lambda: bool(live.charts.uses), timeout=LIMIT_MS)
    uses = [slot.name for slot in live.charts.grid.slots if slot.name in USES]
    assert uses == [GPU_USE, CPU_USE]
    qtbot.waitUntil(lambda: live.charts.uses[0].legend.names == ["here", "Bob's laptop"], timeout=LIMIT_MS)
    live.grab()


def test_a_laptop_that_goes_and_comes_back_is_marked_in_the_plots(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    core.happen(*world.linked(), *world.begun())
    core.happen(*(world.progressed(ME, world.progress(step, loss=1 / (1 + step))) for step in range(20)))
    away = WaitsFor(device=OTHER, cause="away", lasted_s=10.0)
    for waits in ((away,), (away,), ()):
        core.happen(ev.WaitingChanged(run=world.RUN, waits=waits))
    assert [(turn.step, turn.change) for turn in live.points.turns] == [(19.0, "away"), (19.0, "back")]
    qtbot.waitUntil(
        lambda: (
            [[turn.words for turn in plot.marks.turns] for plot in live.charts.plots[:1]]
            == [["Bob's laptop away", "Bob's laptop back"]]
        ),
        timeout=LIMIT_MS,
    )
    live.grab()


def test_without_a_gpu_the_one_reason_is_said(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)))
    assert not live.no_gpu.isVisible(), "nobody has said anything yet"
    why = "CPU only: no NVIDIA driver, no other graphics card."
    core.happen(world.told(ME, world.reading(no_gpu=why)), world.told(OTHER, world.reading(no_gpu=why)))
    assert live.no_gpu.isVisible()
    assert live.no_gpu.text() == ("No GPU use to plot: no NVIDIA driver, no other graphics card.")
    qtbot.waitUntil(lambda: [plot.shown for plot in live.charts.uses] == [CPU_USE], timeout=LIMIT_MS)


def test_who_is_waited_for_is_said_in_the_header_and_in_its_row(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    def waits(*what: WaitsFor, asks: bool = False) -> None:
        core.happen(ev.WaitingChanged(run=world.RUN, waits=what, asks=asks))

    def row(device: DeviceId) -> LaptopRow:
        found = live.progress.members[device].row
        assert found is not None
        return found

    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(3)))
    assert not live.progress.held.isVisible()
    waits(WaitsFor(device=OTHER, cause="away", lasted_s=70, left_s=530))
    assert live.progress.held.isVisible()
    assert (
        live.progress.held.text() == "Bob's laptop has been away for 70 s. The run waits for it, 9 min more."
    )
    away = row(OTHER)
    assert (away.state, away.detail, away.troubled) == ("Away", "for 70 s, 9 min left", True)
    assert (row(ME).state, row(ME).troubled) == ("Waiting for Bob's laptop", False)
    assert not live.progress.keep_waiting.isVisible()
    waits(
        WaitsFor(device=OTHER, cause="script", activity="callback", where="a.py, line 2", lasted_s=9),
        asks=True,
    )
    assert (row(OTHER).state, row(OTHER).detail) == ("In a callback", "a.py, line 2")
    live.progress.keep_waiting.click()
    assert core.asked(GoOnWaiting) == [GoOnWaiting(run=world.RUN)]
    waits()
    assert not live.progress.held.isVisible() and not live.progress.keep_waiting.isVisible()
    assert (row(OTHER).state, row(OTHER).detail) == ("Training", "back after 70 s")
    live.grab()


def test_that_a_laptop_came_back_is_said_for_a_while(qtbot: QtBot) -> None:
    now_s = [50.0]
    progress = RunProgress(lambda: now_s[0])
    qtbot.addWidget(progress)
    names = {ME: "anna", OTHER: "ben"}

    def shown(*waits: WaitsFor) -> str:
        state = State()
        known = (started(), *world.begun(), ev.WaitingChanged(run=world.RUN, waits=waits))
        for event in known:
            state = apply(state, event)
        assert state.run is not None
        progress.show_run(state.run, state, names, "")
        row = progress.members[OTHER].row
        return row.detail if row is not None else ""

    assert shown() == ""
    assert shown(WaitsFor(device=OTHER, cause="away", lasted_s=200)) == "for 3 min"
    assert shown() == "back after 3 min"
    now_s[0] += 10
    assert shown() == "back after 3 min"
    now_s[0] += 10
    assert shown() == ""


def test_without_a_known_end_there_is_no_bar(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(3, steps=None)))
    qtbot.waitUntil(live.progress.step.isVisible, timeout=LIMIT_MS)
    assert not live.progress.bar.isVisible()


def test_files_on_their_way_move_the_bar(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun()[:2])
    core.happen(ev.MemberPhaseChanged(run=world.RUN, device=OTHER, phase="receiving", done=30, total=40))
    assert live.progress.bar.value() == 750
    assert "receiving files, 75 %" in live.progress.members[OTHER].text()


def test_points_are_kept_seen_or_not(core: FakeCore, view: TrainView, live: TrainLive) -> None:
    view.hide()
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)))
    core.happen(world.progressed(ME, world.progress(1)), world.epoch_ended(ME, 0, 0.4))
    assert list(live.points.curves[LOSS].steps) == [0, 1]
    assert live.charts.redraws == 0


def test_the_plots_follow_the_run(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)))
    qtbot.waitUntil(lambda: live.charts.redraws > 0, timeout=LIMIT_MS)
    core.happen(world.progressed(ME, world.progress(1)))
    curve = live.charts.plots[0].curves[0]
    qtbot.waitUntil(lambda: len(curve.raw) == 2, timeout=LIMIT_MS)


def test_after_stop_the_keyboard_is_at_the_runs_main_button(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    core.happen(*world.linked(), *world.begun())
    live.activateWindow()
    live.stop.setFocus()
    qtbot.waitUntil(live.stop.hasFocus, timeout=LIMIT_MS)
    live.stop.click()
    core.happen(*world.finished(last=Stopped(by="here")))
    assert not live.stop.isVisible()
    assert live.outcome.again.hasFocus()


def test_a_stopped_run_goes_on_from_its_result(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    spec = RunSpec(script="/home/ada/digits/digits.py", seed=7)
    last = Stopped(by="here")
    entry = replace(world.entry(spec=spec, last=last, folder="/runs/1"), run=world.RUN)
    moment = Moment(step=70, fit=1, epoch=0, batch=5)
    core.answers[GetRun] = replace(world.details(entry), checkpoint=moment)
    core.happen(*world.linked(), *world.begun())
    live.activateWindow()
    live.stop.setFocus()
    qtbot.waitUntil(live.stop.hasFocus, timeout=LIMIT_MS)
    core.happen(*world.finished(last=last))
    core.flush()
    qtbot.waitUntil(live.outcome.go_on.hasFocus, timeout=LIMIT_MS)
    assert live.outcome.where.text() == "Resumes at fit 2, epoch 1, step 6."
    problem = Problem(code="no-checkpoint", what="No laptop has a checkpoint.", fix="Start anew.")
    core.answers[StartRun] = Refused(problem=problem)
    live.outcome.go_on.click()
    core.flush()
    assert core.asked(StartRun) == [StartRun(spec=replace(spec, devices=(OTHER,), resume=world.RUN))]
    assert live.outcome.not_started.problem == problem
    assert live.outcome.go_on.hasFocus()
    core.happen(ev.RunPlanned(plan=replace(world.plan(), run=RunId("second"))))
    assert not live.outcome.isVisible()
    assert live.outcome.not_started.problem is None


def test_a_run_whose_checkpoint_lies_on_the_other_laptop_goes_on_from_its_result(
    core: FakeCore, live: TrainLive
) -> None:
    entry = replace(world.entry(spec=RunSpec(script="/a/digits.py"), last=Stopped(by="here")), run=world.RUN)
    core.answers[GetRun] = world.details(entry)
    core.happen(*world.linked(), *world.begun(), world.lost(), *world.finished(last=Stopped(by="here")))
    core.flush()
    asked = FindCheckpoints(run=world.RUN)
    assert core.asked(FindCheckpoints) == [asked]
    assert not live.outcome.go_on.isVisible()
    core.happen(world.linked()[1])
    assert core.asked(FindCheckpoints) == [asked, asked], "it is back, and may have one"
    core.happen(world.found())
    assert live.outcome.go_on.isVisible()
    assert live.outcome.where.text() == "Resumes at epoch 4, step 120, with the checkpoint on Bob's laptop."
    live.outcome.go_on.click()
    live.outcome.stop.click()
    assert core.asked(StopRun) == [StopRun()]
    core.happen(ev.RunPlanned(plan=replace(world.plan(), run=RunId("second"))))
    core.happen(ev.RunPhaseChanged(run=RunId("second"), phase=Stopped()))
    core.flush()
    assert not live.outcome.go_on.isVisible(), "that was the run before"


def test_what_closing_the_lid_does_is_said_while_the_run_lasts(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), world.told(ME, world.reading()))
    core.happen(*world.begun(replace(world.plan(), exchange="tls")))
    core.flush()
    lid = live.progress.lid
    assert not lid.isVisible(), "a computer without a battery has no lid"
    core.happen(world.told(ME, replace(world.reading(), has_battery=True)))
    core.happen(world.progressed(ME, world.progress(1)))
    core.flush()
    assert lid.isVisible()
    assert lid.text().startswith("If you close the lid, this laptop sleeps. After 10 s Bob's laptop goes on")
    core.happen(*world.finished())
    core.flush()
    assert not lid.isVisible()


def test_where_the_other_laptop_keeps_a_run_from_going_on_this_one_can_alone(
    core: FakeCore, live: TrainLive
) -> None:
    spec = RunSpec(script="/a/digits.py", devices=(OTHER,), shares={ME: 48, OTHER: 16}, shares_total=64)
    entry = replace(world.entry(spec=spec, last=Stopped(by="here")), run=world.RUN)
    core.answers[GetRun] = replace(world.details(entry), checkpoint=world.MOMENT)
    core.happen(*world.linked(), *world.begun(), *world.finished(last=Stopped(by="here")))
    core.flush()
    assert live.outcome.go_on.isVisible() and not live.outcome.alone.isVisible()
    core.happen(world.lost())
    assert live.outcome.alone.text() == "Go on with this laptop alone"
    live.outcome.alone.click()
    alone = replace(spec, script=entry.source, devices=(), solo=True, shares={}, shares_total=None)
    assert core.asked(StartRun) == [StartRun(spec=replace(alone, resume=world.RUN))]


def test_a_run_that_its_friend_refused_trains_anew_on_this_laptop_alone(
    core: FakeCore, live: TrainLive
) -> None:
    why = Problem(code="consent-refused", what="Its user did not allow it.", fix="Train without it.")
    spec = RunSpec(script="/a/digits.py", devices=(OTHER,))
    entry = replace(world.entry(spec=spec, last=Failed(problem=why)), run=world.RUN)
    core.answers[GetRun] = world.details(entry)
    core.happen(*world.linked(), *world.begun(), *world.finished(last=Failed(problem=why)))
    core.flush()
    assert live.outcome.alone.isVisible() and live.outcome.alone.text() == "Train on this laptop alone"
    live.outcome.alone.click()
    [begun] = core.asked(StartRun)
    assert isinstance(begun, StartRun) and begun.spec.solo and begun.spec.resume is None


def test_stop_is_graceful_and_then_ends_now(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun())
    assert live.stop.text() == "Stop"
    live.stop.click()
    assert core.asked(StopRun) == [StopRun()]
    core.happen(world.phase(Stopping()))
    assert live.stop.text() == "End now"
    live.stop.click()
    assert len(core.asked(StopRun)) == 2
    core.happen(*world.finished(last=Stopped(by="here")))
    assert not live.stop.isVisible()
    assert live.outcome.head.text() == "Stopped on here"


def test_an_idle_laptop_can_be_added_while_a_run_from_here_trains(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    cleo = DeviceId("c" * 64)
    core.happen(*world.linked(), *world.begun())
    add = live.add_laptop
    assert not add.button.isVisible(), "Bob's laptop is in the run already"
    core.happen(*world.linked(name="cleo & co", device=cleo))
    assert add.button.isVisible()
    (action,) = add.button.menu().actions()
    assert action.text() == "cleo && co"
    action.trigger()
    assert core.asked(AddLaptops) == [AddLaptops(run=world.RUN, devices=(cleo,))]
    qtbot.waitUntil(lambda: bool(add.said.text()), timeout=LIMIT_MS)
    assert add.said.text() == "Asking cleo & co. The run goes on meanwhile."
    busy = Problem(code="device-busy", what="cleo is busy.", fix="Wait until that run has ended.")
    core.answers[AddLaptops] = Refused(problem=busy)
    action.trigger()
    qtbot.waitUntil(lambda: "busy" in add.said.text(), timeout=LIMIT_MS)
    assert add.said.text() == "cleo is busy. Wait until that run has ended."
    core.happen(world.phase(Stopping()))
    assert not add.button.isVisible()


def test_a_laptop_that_left_and_watches_can_be_added_again(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun())
    core.happen(ev.BusyChanged(device=OTHER, busy=True))
    core.happen(ev.MemberLeft(run=world.RUN, device=OTHER, problem=left("Bob's laptop")))
    (action,) = live.add_laptop.button.menu().actions()
    assert live.add_laptop.button.isVisible() and action.text() == "Bob's laptop"


def test_no_laptop_can_be_added_to_a_run_from_elsewhere(core: FakeCore, live: TrainLive) -> None:
    cleo = DeviceId("c" * 64)
    elsewhere = replace(world.plan(), starter=OTHER)
    core.happen(*world.linked(), *world.linked(name="cleo", device=cleo), *world.begun(elsewhere))
    assert live.stop.isVisible() and not live.add_laptop.button.isVisible()


def test_this_laptop_leaves_after_a_plain_question(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    elsewhere = replace(world.plan(), starter=OTHER, exchange="tls")
    core.happen(*world.linked(), *world.begun(elsewhere))
    leave = live.leave
    assert leave.button.isVisible() and not leave.question.isVisible()
    leave.button.click()
    assert leave.question.isVisible() and leave.stay.hasFocus() and not leave.stop.isVisible()
    assert leave.words.text().startswith("Bob's laptop goes on from the same step without this laptop")
    assert "copy of the project is deleted when the run ends" in leave.words.text()
    leave.stay.click()
    assert not leave.question.isVisible() and not core.asked(LeaveRun)
    leave.button.click()
    leave.really.click()
    assert core.asked(LeaveRun) == [LeaveRun(run=world.RUN)] and not leave.question.isVisible()
    core.happen(ev.MemberLeft(run=world.RUN, device=ME, problem=left("here")))
    assert not leave.button.isVisible() and live.stop.text() == "Stop watching"


def test_where_the_others_cannot_go_on_stop_is_offered(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(world.plan(strategy="own")))
    leave = live.leave
    leave.button.click()
    assert "needs all of its laptops" in leave.words.text()
    assert leave.stop.isVisible() and not leave.really.isVisible()
    leave.stop.click()
    assert core.asked(StopRun) == [StopRun()] and not core.asked(LeaveRun)


def test_alone_there_is_only_stop(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.begun(world.plan(members=((ME, "here", 64),))))
    assert live.stop.isVisible() and not live.leave.button.isVisible()


def test_what_came_out_is_shown_with_its_folder(
    core: FakeCore, live: TrainLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_url(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return True

    monkeypatch.setattr("app.widgets.folder_box.QDesktopServices.openUrl", open_url)
    monkeypatch.setattr("app.widgets.folder_box.shutil.which", lambda name: None)
    (tmp_path / "outputs").mkdir()
    entry = RunEntry(
        run=world.RUN,
        started_s=0.0,
        script="digits.py",
        phase=Finished(),
        folder=str(tmp_path),
        source="/a.py",
    )
    core.answers[GetRun] = RunDetails(entry=entry, plan=world.plan())
    core.happen(*world.linked(), *world.begun(), *world.finished())
    core.flush()
    assert [view.figure[:3] for view in live.outcome.figures] == [
        ("Loss, last epoch", "0.081", "validation 0.102"),
        ("Accuracy, last epoch", "0.979", "validation 0.972"),
        ("Time", "0:31", "184 steps in 8 epochs"),
        ("Speed", "590", "samples/s"),
    ]
    assert "The curve ends with the mean of the newest steps alone." in live.outcome.figures[0].toolTip()
    result = live.outcome.result.text()
    assert result == "The trained model: trained/model.keras. The script wrote digits.keras."
    assert not any(label.isVisible() for label in live.outcome.lines)
    live.outcome.more.head.click()
    words = [label.text() for label in live.outcome.lines if label.isVisible()]
    assert words[0] == "loss 0.0812, accuracy 0.9791, val_loss 0.1023, val_accuracy 0.9722"
    assert words[-1] == "All laptops ended with the same weights: dddddddd"
    live.outcome.open.click()
    (tmp_path / "report.html").write_text("x")
    live.outcome.report.click()
    assert opened == [str(tmp_path / "outputs"), str(tmp_path / "report.html")]


def test_at_its_end_a_runs_points_are_not_read_once_more(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), *world.finished())
    core.flush()
    assert core.asked(GetRun) == [GetRun(run=world.RUN, points=False)]


def test_at_its_end_the_curves_do_not_lag_behind(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    charts = live.charts
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)))
    qtbot.waitUntil(lambda: charts.redraws > 0 and not charts._timer.isActive(), timeout=LIMIT_MS)
    charts.cost_s = 0.5  # drawings are seconds apart
    core.happen(world.progressed(ME, world.progress(1)))
    assert charts._timer.remainingTime() > 1_000
    core.happen(*world.finished())
    assert charts._timer.remainingTime() == 0
    qtbot.waitUntil(lambda: len(charts.plots[0].curves[0].raw) == 2, timeout=LIMIT_MS)


def test_a_crash_shows_the_scripts_line_and_its_traceback(core: FakeCore, live: TrainLive) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "digits.py", line 12, in <module>\nValueError: <b>x</b>'
    )
    problem = Problem(
        code="script-error",
        what="ValueError: x (digits.py, line 12).",
        fix="Correct the script.",
        detail=trace,
    )
    core.happen(*world.linked(), *world.begun(), *world.finished(last=Failed(problem=problem)))
    assert live.outcome.problem.problem == problem
    assert live.outcome.traceback.isVisible()
    live.outcome.traceback.head.click()
    assert live.outcome.detail.toPlainText() == trace
    assert not live.plots.isVisible()


def test_the_log_has_a_page_for_each_member_as_plain_text(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    core.happen(*world.linked(), *world.begun())
    core.happen(world.logged(ME, "one\n\x1b[31mtwo\x1b[0m <b>bold</b>\n"))
    core.happen(world.logged(OTHER, "there\n", task="worker:0"))
    live.log.head.click()
    assert live.log.text.toPlainText() == "one\ntwo <b>bold</b>"
    core.happen(world.logged(ME, "three\n"))
    qtbot.waitUntil(lambda: live.log.text.toPlainText().endswith("three"), timeout=LIMIT_MS)
    live.log.pages.setCurrentIndex(1)
    assert live.log.pages.currentText() == "Bob's laptop"
    assert live.log.text.toPlainText() == "there"


def test_numbers_that_change_do_not_lay_out_the_page_again(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    core.happen(*world.linked(), *world.begun())

    def go_on(step: int) -> None:
        core.happen(*(world.progressed(device, world.progress(step)) for device in (ME, OTHER)))

    go_on(110)
    qtbot.waitUntil(lambda: live.charts.redraws > 0, timeout=LIMIT_MS)
    go_on(111)
    QApplication.processEvents()
    requests = LayoutRequests()
    QApplication.instance().installEventFilter(requests)  # type: ignore[union-attr]
    before = live.progress.step.text()
    go_on(112)
    QApplication.processEvents()
    assert live.progress.step.text() != before
    assert not requests.of


class LayoutRequests(QObject):
    """Notes the widgets that are to be laid out again."""

    def __init__(self) -> None:
        super().__init__()
        self.of: list[QObject] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.of.append(watched)
        return False


def test_buttons_that_a_result_does_not_have_leave_no_gap(
    qtbot: QtBot, core: FakeCore, view: TrainView, live: TrainLive
) -> None:
    view.resize(700, 640)
    core.happen(*world.linked(), *world.begun())
    for step in range(120):
        core.happen(*(world.progressed(device, world.progress(step)) for device in (ME, OTHER)))
    qtbot.waitUntil(lambda: live.charts.redraws > 0, timeout=LIMIT_MS)
    view.hide()  # another screen is in front
    core.happen(*world.finished())
    view.show()

    def gaps() -> list[int]:
        rows = [each for each in live.outcome.findChildren(Flow) if each.isVisible()]
        assert rows
        return [each.height() - each.heightForWidth(each.width()) for each in rows]

    qtbot.waitUntil(lambda: not any(gaps()), timeout=5_000)


def test_lines_that_were_left_out_are_counted(core: FakeCore, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun())
    lines = LogLines(task="chief:0", stream="stdout", text="last\n", dropped=1200)
    core.happen(ev.MemberLogged(run=world.RUN, device=ME, lines=lines))
    live.log.head.click()
    assert live.log.text.toPlainText().startswith("… 1,200 lines left out here")


def test_a_window_opened_in_the_middle_gets_what_was_before(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(30)))
    core.happen(world.logged(ME, "before\n"))
    past = world.details(
        RunEntry(run=world.RUN, started_s=0.0, script="digits.py", phase=Finished()), steps=31
    )
    load = (LaptopUsed(device=OTHER, second=0.5, cpu_pct=20.0, gpu_pct=80.0),)
    core.answers[GetRun] = replace(past, uses={OTHER: load})
    core.held = True
    view = made_view(qtbot, bridge)
    view.show_state(core.state, ())
    view.show()
    core.happen(world.progressed(ME, world.progress(31)), world.logged(ME, "after\n"))
    core.release()
    core.flush()
    qtbot.waitUntil(lambda: LOSS in view.live.points.curves, timeout=LIMIT_MS)
    assert list(view.live.points.curves[LOSS].steps) == list(range(32))
    core.happen(world.told(OTHER, world.reading(30.0, gpus=(world.gpu(60),))))
    for name, values in ((GPU_USE, [80, 60]), (CPU_USE, [20, 30])):
        assert list(view.live.points.curves[CurveKey(OTHER, name, False)].values) == values
    view.live.log.head.click()
    assert view.live.log.text.toPlainText() == "before\nafter"
    view.hide()


def test_a_run_that_ends_before_its_earlier_points_are_read_gets_its_plots_without_a_lag(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(30)))
    core.answers[GetRun] = world.details(replace(world.entry(), run=world.RUN), steps=31)
    core.held = True
    view = made_view(qtbot, bridge)
    view.show_state(core.state, ())
    view.show_live()
    view.show()
    core.happen(*world.finished())
    core.release()
    core.flush()
    charts = view.live.charts
    qtbot.waitUntil(lambda: charts.redraws > 0 and not charts._timer.isActive(), timeout=LIMIT_MS)
    charts.cost_s = 0.5
    charts.take_in()
    assert charts._timer.remainingTime() == 0
    view.hide()


def test_a_resumed_run_begins_with_the_curve_of_the_run_before(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    moment = Moment(step=31, epoch=1, batch=8)
    parent = RunId("20261121-090000-00000001")
    resume = Resumption(run=parent, checkpoint=ProjectId("e" * 64), moment=moment)
    plan = replace(world.plan(), resume=resume)
    counted = [replace(world.progress(step), done=step + 1) for step in range(32)]
    before = world.details(replace(world.entry(), run=world.RUN))
    core.answers[GetRun] = replace(before, plan=plan, steps={ME: tuple(counted[:31])}, epochs={})
    core.held = True
    core.happen(*world.linked(), *world.begun(plan), world.progressed(ME, counted[31]))
    core.happen(world.logged(ME, "Epoch 2\n"))
    assert LOSS not in live.points.curves, "what comes meanwhile waits for what was before"
    core.release()
    core.flush()
    qtbot.waitUntil(lambda: LOSS in live.points.curves, timeout=LIMIT_MS)
    assert list(live.points.curves[LOSS].steps) == list(range(32))
    live.log.head.click()
    assert live.log.text.toPlainText() == "Epoch 2"


def test_a_run_that_was_over_before_stays_in_the_history(
    qtbot: QtBot, bridge: Bridge, core: FakeCore
) -> None:
    core.happen(*world.linked(), *world.begun(), *world.finished())
    view = made_view(qtbot, bridge)
    view.show_state(core.state, ())
    assert view.pages.currentWidget() is view.setup


def test_on_a_member_it_says_who_started_it(core: FakeCore, live: TrainLive) -> None:
    theirs = world.plan(members=((OTHER, "Bob's laptop", 1), (ME, "here", 1)))
    theirs = type(theirs)(
        **{**{name: getattr(theirs, name) for name in theirs.__struct_fields__}, "starter": OTHER}
    )
    core.happen(*world.linked(), *world.begun(theirs))
    assert live.script.text() == "Started on Bob's laptop."
    core.happen(*world.finished())
    assert not live.outcome.again.isVisible()


def test_a_trial_says_who_started_it_though_that_laptop_is_not_in_it(core: FakeCore, live: TrainLive) -> None:
    alone = world.plan(members=((ME, "here", 1),))
    trial = TrialOf(sweep=SweepId("s"), number=2, trials=3, argument_sets=())
    core.happen(*world.linked(), *world.begun(replace(alone, starter=OTHER, trial=trial)))
    assert live.script.text() == "Started on Bob's laptop. Trial 2 of 3."


def test_run_again_puts_the_run_into_the_form_whatever_stood_there(
    core: FakeCore, view: TrainView, live: TrainLive
) -> None:
    then = RunSpec(script="/home/ada/digits/digits.py", devices=(OTHER,), seed=7)
    core.answers[AnalyseScript] = world.script_read()
    core.answers[GetRun] = lambda _: world.details(replace(world.entry(spec=then), run=world.RUN))
    core.happen(*world.linked())
    view.choose("/home/ada/digits/digits.py")
    core.flush()
    core.happen(*world.begun(), *world.finished())
    core.flush()
    live.outcome.again.click()
    assert not core.asked(StartRun), "a person looks at it first, here as in the history"
    assert view.pages.currentWidget() is view.setup
    assert view.setup.draft.seed == 7


def test_another_run_leads_back_and_the_run_under_way_can_be_found_again(
    core: FakeCore, view: TrainView, tmp_path: Path
) -> None:
    core.happen(*world.linked(), *world.begun())
    view.setup.drop.home = str(tmp_path)
    view.choose_example("digits")
    assert view.pages.currentWidget() is view.setup
    assert view.setup.banner.button.isVisible()
    view.setup.banner.button.click()
    assert view.pages.currentWidget() is view.live


def test_a_form_that_waits_behind_a_run_is_one_click_away_and_as_it_was(
    core: FakeCore, view: TrainView, live: TrainLive
) -> None:
    core.answers[AnalyseScript] = world.script_read()
    core.happen(*world.linked())
    assert not live.back.isVisible()
    view.choose("/home/ada/digits/digits.py")
    core.flush()
    view.setup.arguments.setText("--epochs 3")
    view.setup.arguments.textEdited.emit("--epochs 3")
    theirs = replace(world.plan(), starter=OTHER)
    core.happen(*world.begun(theirs))
    view.show_live()
    assert live.back.isVisible()
    live.back.click()
    assert view.pages.currentWidget() is view.setup
    assert (view.setup.arguments.text(), view.setup.draft.arguments) == ("--epochs 3", "--epochs 3")
    core.happen(*world.finished())
    banner = view.setup.banner
    assert banner.isVisible() and banner.box.problem is not None
    assert banner.box.problem.what == "digits.py, started by Bob's laptop: finished."
    banner.button.click()
    assert view.pages.currentWidget() is live and live.outcome.isVisible()
    assert not live.back.isVisible(), "New run leads there now"
    live.outcome.new.click()
    assert view.pages.currentWidget() is view.setup
    assert view.setup.draft.arguments == "--epochs 3" and not banner.isVisible()


def test_the_sample_starts_by_itself_once_everybody_is_there(
    qtbot: QtBot, core: FakeCore, view: TrainView, tmp_path: Path
) -> None:
    core.answers[AnalyseScript] = world.script_read()
    core.answers[PlanRun] = PlanMade(plan=world.plan())
    core.happen(world.linked()[0])
    view.setup.drop.home = str(tmp_path)
    view.train_example("digits")
    qtbot.waitUntil(lambda: view.setup.read is not None, timeout=LIMIT_MS)
    qtbot.waitUntil(view.setup.train.isEnabled, timeout=LIMIT_MS)
    qtbot.wait(50)
    assert not core.asked(StartRun), "the paired laptop is not connected: a person has to say so"
    core.happen(world.linked()[1])
    qtbot.waitUntil(lambda: bool(core.asked(StartRun)), timeout=LIMIT_MS)
    (asked,) = core.asked(StartRun)
    assert isinstance(asked, StartRun) and asked.spec.devices == (OTHER,)


def test_what_somebody_changes_does_not_start_by_itself(
    qtbot: QtBot, core: FakeCore, view: TrainView, tmp_path: Path
) -> None:
    core.answers[AnalyseScript] = world.script_read()
    core.answers[PlanRun] = PlanMade(plan=world.plan())
    core.happen(world.linked()[0])
    view.setup.drop.home = str(tmp_path)
    view.train_example("digits")
    qtbot.waitUntil(lambda: view.setup.read is not None, timeout=LIMIT_MS)
    qtbot.keyClicks(view.setup.arguments, "--epochs 2")
    core.happen(world.linked()[1])
    qtbot.waitUntil(view.setup.train.isEnabled, timeout=LIMIT_MS)
    qtbot.wait(50)
    assert not core.asked(StartRun)


def test_the_next_run_begins_afresh(core: FakeCore, view: TrainView, live: TrainLive) -> None:
    core.happen(*world.linked(), *world.begun(), world.progressed(ME, world.progress(0)), *world.finished())
    again = world.plan()
    again = type(again)(
        **{**{name: getattr(again, name) for name in again.__struct_fields__}, "run": "second"}
    )
    view.show_setup()
    core.happen(ev.RunPlanned(plan=again))
    assert view.pages.currentWidget() is live
    assert live.points.curves == {}
    assert live.progress.isVisible()


def test_a_run_without_plots_is_reported_at_the_top(qtbot: QtBot, core: FakeCore, live: TrainLive) -> None:
    problem = Problem(code="script-failed", what="It broke.", fix="Mend it.")
    core.happen(*world.linked(), *world.begun(), *world.finished(last=Failed(problem=problem)))
    assert not live.plots.isVisible()
    qtbot.waitUntil(lambda: 0 < live.outcome.geometry().bottom() < live.page.height() // 2, timeout=LIMIT_MS)


def test_the_small_batch_at_an_epochs_end_is_not_taken_for_the_share(
    qtbot: QtBot, core: FakeCore, live: TrainLive
) -> None:
    def shown() -> str:
        row = live.progress.members[OTHER].row
        return row.share if row is not None else ""

    core.happen(*world.linked(), *world.begun(replace(world.plan(), balance=True)))
    core.happen(world.progressed(OTHER, replace(world.progress(3), share=20)))
    qtbot.waitUntil(lambda: shown() == "20 of 64 rows", timeout=LIMIT_MS)
    core.happen(world.progressed(OTHER, replace(world.progress(22), share=0, samples_s=290.0)))
    assert shown() == "20 of 64 rows"
    smaller = replace(world.progress(0), fit=1, share=4, samples_s=80.0)
    core.happen(world.progressed(OTHER, smaller))
    assert shown() == "4 of 8 rows", "another fit may have smaller batches"
