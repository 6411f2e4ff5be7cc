"""A laptop's hardware."""

from pathlib import Path

import psutil
import pytest

from core.telemetry import hardware


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: Intel(R) Core(TM) i7-1260P CPU @ 2.10GHz\n", "Intel Core i7-1260P"),
        ("model name\t: AMD Ryzen 7 5800H with Radeon Graphics\n", "AMD Ryzen 7 5800H with Radeon Graphics"),
        ("processor\t: 0\nBogoMIPS\t: 48.00\nModel\t\t: Raspberry Pi 5 Model B\n", "Raspberry Pi 5 Model B"),
    ],
)
def test_a_cpu_is_named_as_people_call_it(tmp_path: Path, cpuinfo: str, name: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)

    assert hardware.cpu_name(tmp_path / "cpuinfo") == name


def test_a_cpu_that_nobody_names_still_has_a_name(tmp_path: Path) -> None:
    assert hardware.cpu_name(tmp_path / "missing")


def test_this_machine_is_read() -> None:
    has = hardware.read(("a GPU",))

    assert has.cpu and has.gpus == ("a GPU",)
    assert 1 <= has.cores <= (psutil.cpu_count() or 1)
    assert has.memory_bytes == psutil.virtual_memory().total


def test_cores_kept_from_this_process_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.telemetry.hardware.os.sched_getaffinity", lambda pid: {3}, raising=False)

    assert hardware.usable_cores() == 1
