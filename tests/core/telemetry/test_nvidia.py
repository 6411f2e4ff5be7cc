"""NVIDIA's readings, and a reason for each missing one."""

import sys

import pynvml
import pytest

from core.telemetry.nvidia import NO_DRIVER, Nvidia
from tests.core.telemetry.fake_nvml import FakeNvml


def opened(nvml: FakeNvml) -> Nvidia:
    nvidia = Nvidia.open(nvml)
    assert isinstance(nvidia, Nvidia)
    return nvidia


def test_every_gpu_is_read() -> None:
    nvml = FakeNvml()
    nvidia = opened(nvml)

    first, second = nvidia.read()

    assert nvidia.names == ("NVIDIA Test 0", "NVIDIA Test 1")
    assert (first.use_pct, second.use_pct) == (40.0, 41.0)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (1 << 30, 8 << 30)
    assert (first.temperature_c, first.power_w, first.why) == (61.0, 45.5, "")
    nvidia.close()
    assert not nvml.open


def test_a_missing_reading_says_why_and_the_others_are_there() -> None:
    nvml = FakeNvml(
        missing={"power": FakeNvml.NVML_ERROR_NOT_SUPPORTED, "use": FakeNvml.NVML_ERROR_NO_PERMISSION}
    )

    reading = opened(nvml).read()[0]

    assert (reading.use_pct, reading.power_w, reading.temperature_c) == (None, None, 61.0)
    assert reading.why == "no use: this user may not read it; no power: this GPU does not report it"


def test_a_gpu_that_is_lost_while_running_is_named() -> None:
    nvml = FakeNvml()
    nvidia = opened(nvml)
    nvml.missing = dict.fromkeys(("use", "memory", "temperature", "power"), FakeNvml.NVML_ERROR_GPU_IS_LOST)

    reading = nvidia.read()[0]

    assert reading.memory_total_bytes is None
    assert "fallen off the bus" in reading.why


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver"),
        (FakeNvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (FakeNvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "was updated"),
        (FakeNvml.NVML_ERROR_NO_PERMISSION, "may not use"),
        (999, "error 999"),
    ],
)
def test_a_driver_that_does_not_open_says_why(code: int, words: str) -> None:
    why = Nvidia.open(FakeNvml(init_error=code))

    assert isinstance(why, str) and words in why


def test_a_driver_without_gpus_is_closed_again() -> None:
    for nvml in (FakeNvml(count=0), FakeNvml(missing={"count": 999})):
        assert isinstance(Nvidia.open(nvml), str)
        assert not nvml.open


def test_the_stand_in_has_the_librarys_names_and_numbers() -> None:
    for name in vars(FakeNvml):
        if name.startswith("NVML_"):
            assert getattr(pynvml, name) == getattr(FakeNvml, name)
        elif name.startswith("nvml"):
            assert callable(getattr(pynvml, name))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the library may be in several places")
def test_without_the_drivers_library_its_module_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml")
    assert Nvidia.open(library="libno-such-driver.so.1") == NO_DRIVER
    assert "pynvml" not in sys.modules


@pytest.mark.real
def test_the_real_library_opens_or_says_why_not() -> None:
    nvidia = Nvidia.open()

    if isinstance(nvidia, str):
        assert "NVIDIA" in nvidia
    else:
        assert len(nvidia.read()) == len(nvidia.names) > 0
        nvidia.close()
