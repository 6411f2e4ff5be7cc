from __future__ import annotations

import math

from core.report.curves import MOST_CURVES, MOST_PANELS, panels, shown_devices
from core.report.points import CPU_USE, GPU_USE, MOST_BAD
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import Change, LaptopUsed, MembershipChanged
from core.vocabulary.progress import EpochEnd, Progress
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.run.told import epochs_of, run_told, steps_of


def test_the_loss_comes_first_with_its_validation_and_its_steps_faint_behind() -> None:
    found = panels(run_told())
    assert [panel.title for panel in found] == ["loss", "accuracy"]
    assert [(curve.name, curve.faint) for curve in found[0].curves] == [
        ("loss", False),
        ("loss", True),
        ("val_loss", False),
    ]
    assert [x for x, _ in found[0].curves[0].points] == [10, 20, 30, 40]


def test_one_epoch_is_drawn_by_its_steps() -> None:
    found = panels(run_told(steps={ANNA: steps_of(10)}, epochs={ANNA: epochs_of(1, validation=False)}))
    assert [(curve.name, curve.faint, len(curve.points)) for curve in found[0].curves] == [
        ("loss", False, 10)
    ]


def test_members_of_a_managed_run_are_drawn_once_and_those_of_an_own_strategy_each() -> None:
    assert shown_devices(run_told()) == [ANNA]
    own = run_told(plan=plan_of(strategy="own"), epochs={ANNA: epochs_of(4), BEN: epochs_of(3)})
    assert shown_devices(own) == [ANNA, BEN]
    assert [curve.name for curve in panels(own)[1].curves if not curve.faint] == [
        "accuracy (Anna's)",
        "accuracy (Ben's)",
    ]
    assert shown_devices(run_told(plan=plan_of(strategy="own"))) == [ANNA], "the same numbers"
    assert shown_devices(run_told(plan=plan_of(strategy="own"), epochs={})) == [ANNA, BEN]


def test_each_fit_goes_on_where_the_one_before_ended() -> None:
    both = (*steps_of(10), *steps_of(5, fit=1))
    found = panels(run_told(steps={ANNA: both}, epochs={}))
    assert [x for x, _ in found[0].curves[0].points] == [float(x) for x in range(1, 16)]


def test_steps_are_drawn_as_means_since_the_previous_report_and_measurements_come_last() -> None:
    running = Progress(
        at_s=0.0,
        epoch=0,
        epochs=1,
        step=0,
        batch=0,
        logs={"loss": 0.9, "zeal": 1.0},
        recent={"loss": 0.4, "zeal": 2.0},
        grad_norm=3.0,
        samples_s=500.0,
    )
    found = panels(run_told(steps={ANNA: (running,)}, epochs={}))
    assert [panel.title for panel in found] == ["loss", "zeal", "gradient norm", "samples/s"]
    assert [panel.curves[0].points for panel in found] == [[(1.0, y)] for y in (0.4, 2.0, 3.0, 500.0)]


def test_values_that_are_not_finite_give_marks_but_no_point_and_a_learning_rate_no_curve() -> None:
    logs = {"loss": math.nan, "mae": -math.inf, "acc": 1e305, "learning_rate": 0.1}
    step = Progress(at_s=0.0, epoch=0, epochs=1, step=4, batch=4, logs=logs)
    found = {panel.title: panel.curves[0] for panel in panels(run_told(steps={ANNA: (step,)}, epochs={}))}
    assert [curve.points for curve in found.values()] == [[], [], []]
    assert math.isnan(found["loss"].bad[0][1]) and found["loss"].bad[0][0] == 5
    assert (found["mae"].bad, found["acc"].bad) == ([(5, -math.inf)], [(5, 1e305)])
    assert panels(run_told(plan=None, steps={}, epochs={})) == []


def test_a_curve_that_ends_in_very_many_values_that_are_no_numbers_has_its_last() -> None:
    def step(number: int) -> Progress:
        loss = 0.5 if number == MOST_BAD else math.nan
        return Progress(at_s=0.0, epoch=0, epochs=1, step=number, batch=number, logs={"loss": loss})

    (panel,) = panels(run_told(steps={ANNA: tuple(map(step, range(MOST_BAD + 9)))}, epochs={}))
    (curve,) = panel.curves
    assert len(curve.bad) == MOST_BAD and curve.bad[-1][0] == MOST_BAD + 9 > curve.points[-1][0]


def test_a_script_with_very_many_metrics_gives_a_plot_of_bounded_size() -> None:
    logs = {f"metric{number}": 1.0 for number in range(300)}
    epoch = EpochEnd(at_s=0.0, epoch=0, epochs=1, step=0, logs=logs, seconds=1.0)
    found = panels(run_told(steps={}, epochs={ANNA: (epoch,)}))
    assert len(found) == MOST_PANELS
    assert all(len(panel.curves) <= MOST_CURVES for panel in found)


def test_the_use_of_graphics_cards_is_below_the_metrics_at_the_same_steps() -> None:
    uses: tuple[LaptopUsed, ...] = tuple(
        LaptopUsed(device=BEN, second=n, cpu_pct=20, gpu_pct=80 + n) for n in (0.0, 10.5, 99.0)
    )
    membership = (
        MembershipChanged(device=ANNA, change="away", at_s=0.0, second=-3.0),
        MembershipChanged(device=BEN, change="joined", at_s=0.0),
        MembershipChanged(device=BEN, change="away", at_s=0.0, second=20.0),
        MembershipChanged(device=BEN, change="lost", at_s=0.0, second=30.0),
    )
    found = panels(run_told(epochs={}, uses={BEN: uses}, membership=membership))
    assert [panel.title for panel in found] == ["loss", "accuracy", GPU_USE]
    (curve,) = found[-1].curves
    assert (curve.name, curve.points) == ("Ben's", [(1.0, 80.0), (11.0, 90.5), (40.0, 179.0)])
    assert all(panel.turns == [(21.0, "Ben's away"), (31.0, "Ben's lost")] for panel in found)


def test_without_a_card_the_processors_are_shown_and_without_numbers_nothing() -> None:
    uses: dict[DeviceId, tuple[LaptopUsed, ...]] = {
        ANNA: (LaptopUsed(device=ANNA, second=1.0, cpu_pct=20.0),)
    }
    assert [panel.title for panel in panels(run_told(uses=uses))] == ["loss", "accuracy", CPU_USE]
    assert panels(run_told(uses=uses, steps={}, epochs={})) == []


def test_a_laptop_that_was_lost_and_is_back_has_not_left() -> None:
    def turns(*changes: Change) -> tuple[MembershipChanged, ...]:
        return tuple(MembershipChanged(device=BEN, change=each, at_s=1.0) for each in changes)

    assert run_told(membership=turns("joined", "lost")).left == {BEN}
    assert run_told(membership=turns("joined", "lost", "joined")).left == set()
    assert run_told(membership=turns("lost", "joined", "left")).left == {BEN}
