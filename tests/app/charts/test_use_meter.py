"""Laptops' readings on a run's axis."""

from app.charts.points import CPU_USE, GPU_USE, CurveKey, RunPoints, UseMeter
from tests.app import world
from tests.app.charts.test_points import A, B, plan, step


def test_a_reading_stands_where_the_run_was_when_it_came() -> None:
    now_s, points = [50.0], RunPoints(plan())
    meter = UseMeter(points, lambda: now_s[0])
    assert not meter.hear(world.told(A, world.reading())), "no step yet, so no axis"
    first = step(7, loss=1.0)
    points.hear(first)
    meter.hear(first)
    now_s[0] = 53.0
    assert meter.hear(world.told(B, world.reading(20.0, gpus=(world.gpu(80),))))
    later = step(90, loss=0.5)
    points.hear(later)
    meter.hear(later)
    now_s[0] = 54.5
    meter.hear(world.told(B, world.reading(30.0)))
    gpu, cpu = points.curves[CurveKey(B, GPU_USE, False)], points.curves[CurveKey(B, CPU_USE, False)]
    assert (list(gpu.steps), list(gpu.seconds), list(gpu.values)) == ([7], [3.0], [80])
    assert (list(cpu.steps), list(cpu.seconds), list(cpu.values)) == ([7, 90], [3.0, 4.5], [20, 30])


def test_a_window_that_opens_late_goes_on_at_the_runs_own_second() -> None:
    points = RunPoints(plan())
    for number in (0, 100):
        points.hear(step(number, loss=1.0))
    now_s = [9_000.0]
    meter = UseMeter(points, lambda: now_s[0])
    meter.hear(step(100, loss=1.0))
    now_s[0] += 2
    meter.hear(world.told(A, world.reading(20.0)))
    assert list(points.curves[CurveKey(A, CPU_USE, False)].seconds) == [102.0]


def test_numbers_that_are_none_are_left_out() -> None:
    points = RunPoints(plan())
    points.hear(step(1, loss=1.0))
    meter = UseMeter(points, lambda: 0.0)
    meter.hear(world.told(A, world.reading(float("nan"), gpus=(world.gpu(float("inf")),))))
    assert [key.metric for key in points.curves] == ["loss"]
