"""The GPUs, or one sentence on why there are none."""

from pathlib import Path

from core.telemetry.gpus import Gpus
from core.telemetry.nvidia import Nvidia
from tests.core.telemetry.fake_nvml import FakeNvml


def found(base: Path, nvml: FakeNvml) -> Gpus:
    return Gpus.find(lambda: Nvidia.open(nvml), pci=base / "pci")


def test_every_card_is_read(tmp_path: Path) -> None:
    nvml = FakeNvml(count=2)
    gpus = found(tmp_path, nvml)
    assert [reading.name for reading in gpus.read()] == list(gpus.names) == ["NVIDIA Test 0", "NVIDIA Test 1"]
    assert gpus.no_gpu == ""
    gpus.close()
    assert not nvml.open


def test_a_laptop_without_gpus_says_so(tmp_path: Path) -> None:
    gpus = found(tmp_path, FakeNvml(init_error=FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND))

    assert gpus.read() == ()
    assert gpus.no_gpu == "CPU only: no NVIDIA driver."


def test_a_card_that_only_lacks_its_driver_is_named(tmp_path: Path) -> None:
    device = tmp_path / "pci" / "0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de")
    (device / "class").write_text("0x030000")

    gpus = found(tmp_path, FakeNvml(init_error=FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND))

    assert "there is an NVIDIA card, but no NVIDIA driver is installed" in gpus.no_gpu
