"""All GPUs together, or one sentence on why there are none."""

from pathlib import Path

from core.telemetry.gpus import Gpus
from core.telemetry.nvidia import Nvidia
from core.telemetry.sysfs import AMD, INTEL, NVIDIA
from tests.core.telemetry.cards import add_card
from tests.core.telemetry.fake_nvml import FakeNvml


def found(base: Path, nvml: FakeNvml) -> Gpus:
    return Gpus.find(lambda: Nvidia.open(nvml), drm=base / "drm", pci=base / "pci")


def test_all_makers_are_read_in_one_row(tmp_path: Path) -> None:
    add_card(tmp_path / "drm", 0, INTEL, 0x46A6)
    add_card(tmp_path / "drm", 1, AMD, 0x73BF, gpu_busy_percent=5)
    nvml = FakeNvml(count=1)

    gpus = found(tmp_path, nvml)

    assert gpus.names[0] == "NVIDIA Test 0"
    assert [reading.name for reading in gpus.read()] == list(gpus.names)
    assert len(gpus.names) == 3 and gpus.no_gpu == ""
    gpus.close()
    assert not nvml.open


def test_a_laptop_without_gpus_says_so(tmp_path: Path) -> None:
    gpus = found(tmp_path, FakeNvml(init_error=FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND))

    assert gpus.read() == ()
    assert gpus.no_gpu == "CPU only: no NVIDIA driver, no other graphics card."


def test_a_card_that_only_lacks_its_driver_is_named(tmp_path: Path) -> None:
    device = tmp_path / "pci" / "0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"0x{NVIDIA:04x}")
    (device / "class").write_text("0x030000")

    gpus = found(tmp_path, FakeNvml(init_error=FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND))

    assert "there is an NVIDIA card, but no NVIDIA driver is installed" in gpus.no_gpu
