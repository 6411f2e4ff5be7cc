"""Intel's readings: few, and it says so."""

from pathlib import Path

from core.telemetry import sysfs
from core.telemetry.intel import Intel
from core.telemetry.sysfs import AMD, INTEL
from tests.core.telemetry.cards import add_card


def test_a_card_without_readings_says_why(tmp_path: Path) -> None:
    add_card(tmp_path, 0, INTEL, 0x46A6)
    add_card(tmp_path, 1, AMD, 0x73BF)

    (reading,) = Intel(sysfs.cards(tmp_path)).read()

    assert reading.use_pct is None and reading.temperature_c is None
    assert "root only" in reading.why


def test_a_card_with_a_sensor_has_a_temperature(tmp_path: Path) -> None:
    add_card(tmp_path, 0, INTEL, 0x56A0, hwmon__hwmon1__temp2_input=43_500)

    (reading,) = Intel(sysfs.cards(tmp_path)).read()

    assert reading.temperature_c == 43.5
