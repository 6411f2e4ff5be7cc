"""The card of a sweep: its trials, the best one, and what can be done with it."""

from __future__ import annotations

import pytest
from msgspec import structs
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.sweep_card import SweepCard
from app.views.train import TrainView
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import ChangeSettings, GetRun, ResumeSweep, StopSweep
from core.vocabulary.ids import RunId
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.sweep import Sweep, Trial
from tests.app import world
from tests.app.cli.test_sweep import BEGUN, FAILED, SWEEP, TRIALS, finished
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM
from tests.core.fake_node import ME, OTHER


@pytest.fixture
def card(qtbot: QtBot, under: QWidget, bridge: Bridge) -> SweepCard:
    card = SweepCard(bridge)
    card.setParent(under)
    bridge.changed.connect(lambda events, state: card.show_state(state))
    return card


def rows(card: SweepCard) -> list[tuple[str, ...]]:
    items = [card.table.topLevelItem(at) for at in range(card.table.topLevelItemCount())]
    return [tuple(item.text(at) for at in range(4)) for item in items if item is not None]


def swept(phase: str, *trials: Trial) -> ev.Event:
    sweep: Sweep = BEGUN
    for trial in trials:
        sweep = sweep.having(trial)
    return ev.SweepChanged(sweep=structs.replace(sweep, phase=phase))


def test_the_best_trial_comes_first_and_is_named(card: SweepCard, core: FakeCore) -> None:
    assert card.isHidden()
    core.happen(ev.SweepChanged(sweep=BEGUN))
    assert rows(card) == [("1", "--lr 0.1", "", "waiting"), ("2", "--lr 0.01", "", "waiting")]
    running = structs.replace(TRIALS[0], status="running", begun=1, laptop="ben", epochs=2)
    core.happen(ev.TrialChanged(sweep=SWEEP, trial=running))
    core.happen(ev.TrialChanged(sweep=SWEEP, trial=finished(2, 0.25)))
    assert rows(card) == [
        ("2", "--lr 0.01", "loss 0.25, best", "finished on ben"),
        ("1", "--lr 0.1", "", "on ben, 2 epochs"),
    ]
    assert card.best.text() == "Best: trial 2 (--lr 0.01), loss 0.25."
    assert not card.stop.isHidden() and card.go_on.isHidden() and card.longer.isHidden()


def test_the_trials_curves_are_smoothed_as_the_user_chose_last(
    qtbot: QtBot, card: SweepCard, core: FakeCore
) -> None:
    core.happen(ev.SettingsChanged(settings=Settings(smoothing=0.6)), ev.SweepChanged(sweep=BEGUN))
    bar = card.curves.charts.bar
    assert bar.look.smoothing == 0.6
    bar.smoothing.setValue(30)
    kept = [ChangeSettings(change=SettingsChange(smoothing=0.3))]
    qtbot.waitUntil(lambda: core.asked(ChangeSettings) == kept, timeout=60_000)


def test_it_is_stopped_and_goes_on_by_a_click(card: SweepCard, core: FakeCore) -> None:
    core.happen(ev.SweepChanged(sweep=BEGUN))
    card.stop.click()
    core.flush()
    assert core.asked(StopSweep) == [StopSweep()]
    core.happen(swept("stopped", finished(1, 0.5)))
    assert card.stop.isHidden()
    core.answers[ResumeSweep] = Refused(problem=PROBLEM)
    card.go_on.click()
    core.flush()
    assert core.asked(ResumeSweep) == [ResumeSweep(sweep=SWEEP)]
    assert PROBLEM.what in card.problem.text()


def test_values_are_added_to_a_sweep(card: SweepCard, core: FakeCore) -> None:
    core.happen(ev.SweepChanged(sweep=BEGUN))
    assert card.more.isHidden()
    card.adds.click()
    assert card.more.isVisible() and card.adds.isHidden()
    assert card.more.arguments.text() == "--lr 0.1", "as the first trial"
    assert not card.more.add.isEnabled() and "are trials already" in card.more.words.text()
    card.more.arguments.setText("--lr 0.1,0.5,,")
    assert not card.more.add.isEnabled() and "empty value" in card.more.words.text()
    card.more.arguments.setText("--lr 0.1,0.5,0.25")
    assert card.more.words.text() == "2 more trials."
    core.answers[ResumeSweep] = Refused(problem=PROBLEM)
    card.more.add.click()
    core.flush()
    sets = (("--lr", "0.5"), ("--lr", "0.25"))
    assert core.asked(ResumeSweep) == [ResumeSweep(sweep=SWEEP, argument_sets=sets)]
    assert PROBLEM.what in card.problem.text()
    assert card.more.isHidden() and card.adds.isVisible()


def test_the_trials_curves_are_read_and_the_best_stands_out(
    qtbot: QtBot, card: SweepCard, core: FakeCore
) -> None:
    core.answers[GetRun] = lambda command: world.details(world.entry(), steps=46)
    card.resize(900, 760)
    core.happen(ev.SweepChanged(sweep=BEGUN))
    assert not card.curves.isVisible(), "no trial has begun"
    core.happen(ev.TrialChanged(sweep=SWEEP, trial=finished(2, 0.25)))
    core.flush()
    qtbot.waitUntil(lambda: len(card.curves.charts.sources) == 1, timeout=60_000)
    running = structs.replace(finished(1, 0.5), status="running")
    core.happen(ev.TrialChanged(sweep=SWEEP, trial=running))
    core.flush()
    qtbot.waitUntil(lambda: len(card.curves.charts.sources) == 2, timeout=60_000)
    first, best = card.curves.charts.sources
    assert [(each.label, each.strong) for each in (first, best)] == [
        ("1: lr 0.1", False),
        ("2: lr 0.01, best", True),
    ]
    assert first.names == best.names == {ME: "here", OTHER: "Bob's laptop"}

    def widths() -> list[float]:
        plots = card.curves.charts.plots
        return [item.opts["pen"].widthF() for _, _, item, _ in plots[0]._items] if plots else []

    qtbot.waitUntil(lambda: len(widths()) > 1 and max(widths()) != min(widths()), timeout=60_000)
    assert max(widths()) == 2 * min(widths())
    card.curves._rest.setInterval(0)
    core.happen(ev.TrialChanged(sweep=SWEEP, trial=structs.replace(running, epochs=2)))

    first_run, second = RunId("run1"), RunId("run2")
    read = [GetRun(run=run) for run in (second, first_run, first_run, first_run)]

    def have_read(count: int) -> None:
        def have() -> bool:
            core.flush()
            return core.asked(GetRun) == read[:count] and not card.curves._reading

        qtbot.waitUntil(have, timeout=60_000)

    have_read(3)
    core.happen(swept("finished", finished(2, 0.25), finished(1, 0.2)))
    have_read(4)
    card.curves.head.click()
    core.happen(swept("finished", structs.replace(finished(2, 0.25), epochs=9), finished(1, 0.2)))
    have_read(4)
    assert not card.curves._rest.isActive(), "folded, it reads nothing"


def test_the_best_is_offered_for_a_longer_training(card: SweepCard, core: FakeCore) -> None:
    asked: list[Trial] = []
    card.best_asked.connect(asked.append)
    core.happen(ev.SweepChanged(sweep=BEGUN))
    core.happen(swept("finished", FAILED, finished(2, 0.25)))
    assert card.go_on.isHidden(), "every trial has a result"
    card.longer.click()
    assert asked == [finished(2, 0.25)]


@pytest.fixture
def view(under: QWidget, bridge: Bridge) -> TrainView:
    view = TrainView(bridge)
    view.setParent(under)
    view.resize(under.size())
    view.show()
    bridge.changed.connect(lambda events, state: view.show_state(state, events))
    return view


def test_the_form_for_the_best_has_no_trials_above_it(view: TrainView, core: FakeCore) -> None:
    core.happen(ev.SweepChanged(sweep=BEGUN))
    core.happen(swept("finished", FAILED, finished(2, 0.25)))
    view.show_live()
    card = view.sweep
    assert card is not None and card.isVisible()
    card.longer.click()
    assert card.isHidden()
    assert view.pages.currentWidget() is view.setup
    assert "0.01" in view.setup.arguments.text()


def test_one_card_lies_on_the_page_in_front_and_none_is_made_for_an_old_sweep(
    view: TrainView, core: FakeCore
) -> None:
    core.happen(swept("finished", FAILED, finished(2, 0.25)))
    assert not view.findChildren(SweepCard)
    core.happen(ev.SweepChanged(sweep=BEGUN))
    (card,) = view.findChildren(SweepCard)
    for hides in (False, True):
        for show, page in ((view.show_live, view.live), (view.show_setup, view.setup)):
            show()
            assert page.isAncestorOf(card) and card.isVisible() is not hides
        card.dismiss()


def test_an_old_sweep_is_not_shown_and_one_that_is_hidden_stays_so(card: SweepCard, core: FakeCore) -> None:
    core.happen(swept("finished", finished(1, 0.5), finished(2, 0.5)))
    assert card.isHidden(), "it was over before this window opened"
    core.happen(swept("stopped"))
    assert not card.isHidden(), "it can go on"
    card.hides.click()
    core.happen(swept("stopped", finished(1, 0.5)))
    assert card.isHidden()
    core.happen(ev.SweepChanged(sweep=BEGUN))
    assert not card.isHidden(), "it goes on"
