"""AMD's readings from sysfs."""

from pathlib import Path

from core.telemetry import sysfs
from core.telemetry.amd import Amd
from core.telemetry.sysfs import AMD, INTEL
from tests.core.telemetry.cards import add_card


def test_a_card_is_read_in_the_units_of_the_house(tmp_path: Path) -> None:
    add_card(tmp_path, 0, INTEL, 0x46A6)
    add_card(
        tmp_path,
        1,
        AMD,
        0x73BF,
        gpu_busy_percent=37,
        mem_info_vram_used=1 << 30,
        mem_info_vram_total=16 << 30,
        hwmon__hwmon3__temp1_input=54_000,
        hwmon__hwmon3__power1_average=31_000_000,
    )

    (reading,) = Amd(sysfs.cards(tmp_path)).read()

    assert reading.use_pct == 37.0
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (1 << 30, 16 << 30)
    assert (reading.temperature_c, reading.power_w, reading.why) == (54.0, 31.0, "")


def test_what_the_driver_does_not_tell_has_a_reason(tmp_path: Path) -> None:
    add_card(tmp_path, 0, AMD, 0x73BF, gpu_busy_percent=0)

    (reading,) = Amd(sysfs.cards(tmp_path)).read()

    assert reading.use_pct == 0.0
    assert reading.power_w is None
    assert "no power: the amdgpu driver does not tell it" in reading.why
    assert "no use" not in reading.why
