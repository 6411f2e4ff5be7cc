"""The limit for loading TensorFlow follows this laptop's earlier times."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.supervisor.loading_times import KEPT, LoadingTimes
from core.supervisor.machine import Supervision
from core.supervisor.state import Limits
from core.vocabulary.limits import LOAD_MOST_S, LOAD_S
from core.vocabulary.trainer_messages import Train


def test_a_laptop_without_known_times_has_the_usual_limit(tmp_path: Path) -> None:
    assert LoadingTimes(tmp_path / "loading.json").limit_s() == LOAD_S == 120.0


@pytest.mark.parametrize(
    ("took", "limit_s"),
    [((6.0,), 120.0), ((30.0,), 120.0), ((6.0, 115.0, 7.0), 460.0), ((899.0,), LOAD_MOST_S)],
)
def test_the_slowest_of_the_last_few_decides(tmp_path: Path, took: tuple[float, ...], limit_s: float) -> None:
    times = LoadingTimes(tmp_path / "loading.json")
    for seconds in took:
        times.add(seconds)
    assert LoadingTimes(tmp_path / "loading.json").limit_s() == limit_s, "also after a restart"


def test_a_slow_day_is_forgotten_after_a_few_quick_ones(tmp_path: Path) -> None:
    times = LoadingTimes(tmp_path / "loading.json")
    times.add(115.0)
    for _ in range(KEPT - 1):
        times.add(6.0)
        assert times.limit_s() == 460.0
    times.add(6.0)
    assert times.limit_s() == LOAD_S


@pytest.mark.parametrize("odd", [b"", b"[1, 2", b'["x"]', b"[-5.0, 1e308, 6.0]", b"\xff"])
def test_a_damaged_record_is_as_good_as_none_and_mends_itself(tmp_path: Path, odd: bytes) -> None:
    path = tmp_path / "loading.json"
    path.write_bytes(odd)
    path.chmod(0o600)
    times = LoadingTimes(path)
    assert times.limit_s() == LOAD_S
    times.add(100.0)
    assert times.limit_s() == 400.0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failing_disk_costs_only_the_record(tmp_path: Path) -> None:
    times = LoadingTimes(tmp_path / "no such folder" / "loading.json")
    times.add(100.0)
    assert times.limit_s() == LOAD_S


def test_a_trainer_of_a_slow_laptop_is_given_its_time(tmp_path: Path) -> None:
    times = LoadingTimes(tmp_path / "loading.json")
    times.add(115.0)
    train = Train(run="r", task="chief:0", folder="/f", script="s.py")
    machine = Supervision(train, Limits(boot_s=times.limit_s()), 1000.0)
    assert (machine.on_time(1459.0), machine.too_slow) == ([], False)
    assert (machine.on_time(1460.0), machine.too_slow) == (["kill"], True)
    exit = machine.on_dead(-9, memory=False, tail="")
    assert exit.problem is not None
    assert "did not load within 8 min" in exit.problem.what
