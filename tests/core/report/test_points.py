"""Members' reports become points of curves."""

import math

from msgspec.structs import replace

from core.report.points import (
    GPU_USE,
    GRADIENT_NORM,
    MOST_BAD,
    MOST_CURVES,
    SAMPLES_S,
    CurveKey,
    Points,
    RunPoints,
    by_use,
)
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.events import MemberEndedEpoch, MemberLogged, MemberProgressed
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Member, Moment, Plan, Resumption, Role, Task
from core.vocabulary.progress import Diverged, EpochEnd, LogLines, Progress

A, B, RUN = DeviceId("a" * 64), DeviceId("b" * 64), RunId("r")


def plan(strategy: str = "managed") -> Plan:
    return Plan(
        run=RUN,
        starter=A,
        project=ProjectId("p"),
        script="train.py",
        strategy=strategy,  # type: ignore[arg-type]
        members=(Member(device=A, name="A"), Member(device=B, name="B")),
        tasks=(Task(device=A, role=Role.CHIEF, index=0), Task(device=B, role=Role.WORKER, index=0)),
    )


def step(number: int, device: DeviceId = A, *, fit: int = 0, **logs: float) -> MemberProgressed:
    progress = Progress(at_s=100.0 + number, fit=fit, epoch=0, epochs=1, step=number, batch=number, logs=logs)
    return MemberProgressed(run=RUN, device=device, progress=progress)


def epoch(number: int, device: DeviceId = A, **logs: float) -> MemberEndedEpoch:
    end = EpochEnd(at_s=100.0 + number, epoch=0, epochs=1, step=number, logs=logs, seconds=1.0)
    return MemberEndedEpoch(run=RUN, device=device, epoch=end)


def test_the_chiefs_steps_are_a_managed_runs_curve() -> None:
    points = RunPoints(plan())
    assert points.on_event(step(0, loss=2.0))
    assert not points.on_event(step(0, B, loss=2.0))
    points.on_event(step(3, loss=1.0))
    curve = points.curves[CurveKey(DeviceId(""), "loss", False)]
    assert list(curve.steps) == [0, 3]
    assert list(curve.seconds) == [0, 3]
    assert list(curve.values) == [2, 1]
    assert len(points.curves) == 1


def test_members_with_a_strategy_of_their_own_have_a_curve_each() -> None:
    points = RunPoints(plan("own"))
    points.on_event(step(0, A, loss=2.0))
    points.on_event(step(0, B, loss=3.0))
    assert {key.member for key in points.curves} == {A, B}


def test_an_epochs_end_adds_validation_and_metrics_that_steps_lack() -> None:
    points = RunPoints(plan())
    points.on_event(step(9, loss=2.0))
    points.on_event(epoch(9, loss=1.9, val_loss=2.5, learning_rate=0.1))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].values) == [2.0]
    assert list(points.ends[CurveKey(DeviceId(""), "loss", False)].values) == [1.9]
    assert list(points.curves[CurveKey(DeviceId(""), "loss", True)].values) == [2.5]
    assert list(points.curves[CurveKey(DeviceId(""), "learning_rate", False)].values) == [0.1]
    assert by_use(key.metric for key in points.curves) == ["loss", "learning_rate"]


def test_a_second_fit_goes_on_where_the_first_ended() -> None:
    points = RunPoints(plan())
    for event in (step(0, loss=3.0), step(9, loss=2.0), step(0, fit=1, loss=1.0)):
        points.on_event(event)
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].steps) == [0, 9, 10]


def test_steps_and_seconds_never_fall() -> None:
    points = RunPoints(plan())
    points.on_event(step(9, loss=1.0))
    points.on_event(step(4, loss=2.0))
    curve = points.curves[CurveKey(DeviceId(""), "loss", False)]
    assert list(curve.steps) == [9, 9]
    assert list(curve.seconds) == [0, 0]


def test_values_that_are_not_finite_are_marked() -> None:
    points = RunPoints(plan())
    for number, value in enumerate([1.0, math.nan, math.inf]):
        points.on_event(step(number, loss=value))
    assert points.curves[CurveKey(DeviceId(""), "loss", False)].bad == [1, 2]


def test_of_very_many_values_that_are_not_finite_the_last_is_known_too() -> None:
    points = Points()
    for number in range(MOST_BAD + 500):
        points.add(number, number, math.nan)
    assert len(points.bad) == MOST_BAD
    assert (points.bad[-2], points.bad[-1]) == (MOST_BAD - 2, MOST_BAD + 499)


def test_a_loss_that_became_infinite_is_not_called_nan() -> None:
    points = RunPoints(plan())
    lost = (Diverged(value="NaN", epoch=0, step=0), Diverged(value="infinite", epoch=0, step=1))
    for number, diverged in enumerate(lost):
        progress = replace(step(number).progress, diverged=diverged)
        points.on_event(MemberProgressed(run=RUN, device=A, progress=progress))
    values = points.curves[CurveKey(DeviceId(""), "loss", False)].values
    assert math.isnan(values[0]) and values[1] == math.inf


def test_a_script_that_logs_endless_names_gets_a_limited_number_of_curves() -> None:
    points = RunPoints(plan())
    points.on_event(step(0, A, fit=0, **{f"metric{number}": 1.0 for number in range(MOST_CURVES + 9)}))
    assert len(points.curves) == MOST_CURVES


def test_other_events_bring_no_point() -> None:
    lines = LogLines(task="chief:0", stream="stdout", text="hello")
    assert not RunPoints(plan()).on_event(MemberLogged(run=RUN, device=A, lines=lines))


def test_a_past_run_has_the_same_curves_as_while_it_ran() -> None:
    events: list[MemberProgressed | MemberEndedEpoch] = [
        step(0, loss=3.0),
        step(9, loss=2.0),
        epoch(9, loss=2.1, val_loss=2.5),
        step(0, fit=1, loss=1.0),
    ]
    live = RunPoints(plan())
    for event in events:
        live.on_event(event)
    details = RunDetails(
        entry=RunEntry(run=RUN, started_s=0.0, script="train.py", phase=Finished()),
        plan=plan(),
        steps={A: tuple(event.progress for event in events if isinstance(event, MemberProgressed))},
        epochs={A: tuple(event.epoch for event in events if isinstance(event, MemberEndedEpoch))},
    )
    past = RunPoints.of(details)
    assert {key: list(curve.steps) for key, curve in past.curves.items()} == {
        key: list(curve.steps) for key, curve in live.curves.items()
    }


def resumed(moment: Moment) -> Plan:
    made = plan()
    resumption = Resumption(run=RunId("old"), checkpoint=ProjectId("d"), moment=moment)
    return replace(made, resume=resumption)


def test_a_continued_run_goes_on_where_the_one_before_ended() -> None:
    """Its trainer counts from the epoch in which it begins: batch 6 of epoch 3 is the 31st step overall."""
    points = RunPoints(resumed(Moment(step=30, epoch=2, batch=5)))
    first = step(5, loss=1.0)
    progress = replace(first.progress, epoch=2, epochs=9, batch=5, steps_in_epoch=12)
    points.on_event(replace(first, progress=progress))
    points.on_event(replace(first, progress=replace(progress, step=9, batch=9)))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].steps) == [30, 34]


def test_a_continued_run_whose_record_counts_all_steps_is_not_moved() -> None:
    points = RunPoints(resumed(Moment(step=30, epoch=2, batch=6)))
    first = step(30, loss=1.0)
    progress = replace(first.progress, epoch=2, epochs=9, batch=6, steps_in_epoch=12)
    points.on_event(replace(first, progress=progress))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].steps) == [30]


def test_the_laptops_load_is_on_the_same_axis_and_is_no_metric() -> None:
    points = RunPoints(plan())
    points.add_use(B, GPU_USE, 3.0, 70.0)
    assert points.curves == {}, "nothing was reported yet: there is no axis"
    named_alike = step(40, loss=1.0)
    logs = {"loss": 1.0, GPU_USE: 5.0}
    points.on_event(replace(named_alike, progress=replace(named_alike.progress, logs=logs)))
    points.add_use(B, GPU_USE, 3.0, 70.4)
    use = points.curves[CurveKey(B, GPU_USE, False)]
    assert (list(use.steps), list(use.seconds), list(use.values)) == ([40], [3], [70])
    assert by_use(key.metric for key in points.curves) == ["loss"]


def test_points_of_an_epoch_have_its_number() -> None:
    points = RunPoints(plan())
    points.on_event(epoch(9, loss=1.9, val_loss=2.5))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", True)].epochs) == [0]


def test_an_epoch_that_was_broken_off_is_no_point_beside_whole_ones() -> None:
    points = RunPoints(plan())
    points.on_event(epoch(9, accuracy=0.5))
    broken = epoch(10, accuracy=1.0)
    assert not points.on_event(replace(broken, epoch=replace(broken.epoch, whole=False, steps=1)))
    assert list(points.curves[CurveKey(DeviceId(""), "accuracy", False)].values) == [0.5]


def test_steps_counted_over_the_whole_training_are_placed_by_that_count() -> None:
    points = RunPoints(resumed(Moment(step=30, epoch=2, batch=5)))
    for number, done in ((0, 1), (29, 30), (30, 31)):
        told = step(number, loss=1.0)
        points.on_event(replace(told, progress=replace(told.progress, done=done)))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].steps) == [0, 29, 30]


def test_a_curve_shows_means_since_the_previous_report_where_the_trainer_reports_them() -> None:
    """Keras' means over the epoch so far made each curve jump at the start of an epoch."""
    points = RunPoints(plan())
    told = step(3, loss=2.0, auc=0.5)
    points.on_event(replace(told, progress=replace(told.progress, recent={"loss": 1.25})))
    moved = step(4, loss=2.0, auc=0.5)
    points.on_event(replace(moved, progress=replace(moved.progress, recent={})))
    points.on_event(epoch(4, loss=2.0, auc=0.7))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].values) == [1.25]
    auc = points.curves[CurveKey(DeviceId(""), "auc", False)]
    assert (list(auc.steps), list(auc.values)) == ([4], [0.7]), "what is no mean has a point an epoch"


def test_gradient_norm_and_speed_are_curves_and_no_metrics_of_the_script() -> None:
    points = RunPoints(plan())
    told = step(3, loss=2.0)
    points.on_event(replace(told, progress=replace(told.progress, grad_norm=0.5, samples_s=800.0)))
    assert [(key.metric, list(line.values)) for key, line in points.curves.items()] == [
        ("loss", [2.0]),
        (GRADIENT_NORM, [0.5]),
        (SAMPLES_S, [800.0]),
    ]


def test_epochs_count_on_over_fits_unless_they_do_so_themselves() -> None:
    points = RunPoints(plan())
    for fit, number, batch in ((0, 0, 1), (0, 1, 3), (1, 0, 1), (2, 3, 0)):
        told = step(10 * number + batch, fit=fit, loss=1.0)
        inside = replace(told.progress, epoch=number, batch=batch, steps_in_epoch=4)
        points.on_event(replace(told, progress=inside))
    assert list(points.curves[CurveKey(DeviceId(""), "loss", False)].places) == [0.5, 2.0, 2.5, 3.25]


def test_metrics_are_in_reading_order() -> None:
    names = ["layer10", SAMPLES_S, "layer2", GPU_USE, "mae", "accuracy", "loss", GRADIENT_NORM]
    assert by_use(names) == ["loss", "mae", "accuracy", "layer2", "layer10", GRADIENT_NORM, SAMPLES_S]
