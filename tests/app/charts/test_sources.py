"""Laptops' readings on a run's axis."""

from app.charts.sources import UseMeter
from core.report.points import CPU_USE, GPU_USE, CurveKey, RunPoints, TurnPoint, by_use
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.errors import LEFT_RUN, Problem
from core.vocabulary.events import MemberLeft, WaitingChanged
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed, MembershipChanged
from core.vocabulary.phases import Finished
from core.vocabulary.waits import WaitsFor
from tests.app import world
from tests.core.report.test_points import RUN, A, B, plan, step


def test_a_reading_stands_where_the_run_was_when_it_came() -> None:
    now_s, points = [50.0], RunPoints(plan())
    meter = UseMeter(points, lambda: now_s[0])
    assert not meter.on_event(world.told(A, world.reading())), "no step yet, so no axis"
    first = step(7, loss=1.0)
    points.on_event(first)
    meter.on_event(first)
    now_s[0] = 53.0
    assert meter.on_event(world.told(B, world.reading(20.0, gpus=(world.gpu(80),))))
    later = step(10, loss=0.5)
    points.on_event(later)
    meter.on_event(later)
    now_s[0] = 54.5
    meter.on_event(world.told(B, world.reading(30.0)))
    gpu, cpu = points.curves[CurveKey(B, GPU_USE, False)], points.curves[CurveKey(B, CPU_USE, False)]
    assert (list(gpu.steps), list(gpu.seconds), list(gpu.values)) == ([7], [3.0], [80])
    assert (list(cpu.steps), list(cpu.seconds), list(cpu.values)) == ([7, 10], [3.0, 4.5], [20, 30])


def test_a_window_that_opens_late_goes_on_at_the_runs_own_second() -> None:
    points = RunPoints(plan())
    for number in (0, 100):
        points.on_event(step(number, loss=1.0))
    now_s = [9_000.0]
    meter = UseMeter(points, lambda: now_s[0])
    meter.on_event(step(100, loss=1.0))
    now_s[0] += 2
    meter.on_event(world.told(A, world.reading(20.0)))
    assert list(points.curves[CurveKey(A, CPU_USE, False)].seconds) == [102.0]


def test_a_window_that_opens_while_a_laptop_is_away_has_one_origin_for_all_curves() -> None:
    points = RunPoints(plan())
    for number in (0, 100):
        points.on_event(step(number, loss=1.0))
    points.used_s = 400.0  # the absence's readings in the record
    now_s = [9_000.0]
    meter = UseMeter(points, lambda: now_s[0])
    meter.on_event(world.told(A, world.reading(20.0)))
    now_s[0] += 100
    points.on_event(back := step(500, loss=0.5))
    meter.on_event(back)
    meter.on_event(world.told(A, world.reading(30.0)))
    assert list(points.curves[CurveKey(A, CPU_USE, False)].seconds) == [400.0, 500.0]


def test_numbers_that_are_none_are_left_out() -> None:
    points = RunPoints(plan())
    points.on_event(step(1, loss=1.0))
    meter = UseMeter(points, lambda: 0.0)
    meter.on_event(world.told(A, world.reading(float("nan"), gpus=(world.gpu(float("inf")),))))
    assert [key.metric for key in points.curves] == ["loss"]


def away(*devices: DeviceId) -> WaitingChanged:
    return WaitingChanged(
        run=RUN, waits=tuple(WaitsFor(device=each, cause="away", lasted_s=10.0) for each in devices)
    )


def test_a_laptop_that_goes_stands_where_the_run_was_and_comes_back_later() -> None:
    now_s, points = [50.0], RunPoints(plan())
    meter = UseMeter(points, lambda: now_s[0])
    assert not meter.on_event(away(B)), "no step yet, so no axis"
    meter.on_event(away())
    points.on_event(first := step(7, loss=1.0))
    meter.on_event(first)
    now_s[0] = 60.0
    assert meter.on_event(away(B))
    assert not meter.on_event(away(B))
    now_s[0] = 90.0
    assert meter.on_event(away())
    assert points.turns == [TurnPoint(7.0, 10.0, B, "away"), TurnPoint(7.0, 40.0, B, "back")]


def test_a_killed_laptop_is_lost_and_one_that_its_user_takes_out_has_left() -> None:
    points = RunPoints(plan())
    meter = UseMeter(points, lambda: 60.0)
    points.on_event(first := step(7, loss=1.0))
    meter.on_event(first)
    for device, code in ((A, "killed"), (B, LEFT_RUN)):
        assert meter.on_event(MemberLeft(run=RUN, device=device, problem=Problem(code=code, what="It went.")))
    assert [(turn.device, turn.change) for turn in points.turns] == [(A, "lost"), (B, "left")]


def test_a_past_runs_laptops_stand_where_the_run_was_at_that_second() -> None:
    details = RunDetails(
        entry=RunEntry(run=RUN, started_s=0.0, script="train.py", phase=Finished()),
        plan=plan(),
        steps={A: tuple(step(number, loss=1.0).progress for number in (0, 10, 20))},
        uses={
            B: (
                LaptopUsed(device=B, second=0.5, cpu_pct=20.0, gpu_pct=80.0),
                LaptopUsed(device=B, second=10.5, cpu_pct=30.0),
            )
        },
        membership=(
            MembershipChanged(device=A, change="joined", at_s=0.0),
            MembershipChanged(device=B, change="away", at_s=0.0, second=12.0),
            MembershipChanged(device=B, change="left", at_s=0.0, second=99.0),
        ),
    )
    points = RunPoints.of(details)
    gpu, cpu = points.curves[CurveKey(B, GPU_USE, False)], points.curves[CurveKey(B, CPU_USE, False)]
    assert (list(gpu.steps), list(gpu.seconds), list(gpu.values)) == ([0], [0.5], [80])
    assert (list(cpu.steps), list(cpu.seconds), list(cpu.values)) == ([0, 10], [0.5, 10.5], [20, 30])
    assert points.turns == [TurnPoint(10.0, 12.0, B, "away"), TurnPoint(20.0, 99.0, B, "left")]
    assert by_use(key.metric for key in points.curves) == ["loss"]


def test_a_window_that_opens_while_somebody_is_away_marks_that_once() -> None:
    points = RunPoints(plan())
    points.on_event(step(7, loss=1.0))
    points.add_turn(B, "away", 3.0, 5.0)  # from the record
    UseMeter(points).on_event(away(B))
    assert [turn.change for turn in points.turns] == ["away"]
