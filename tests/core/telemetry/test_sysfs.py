"""Cards as listed by Linux, and the data of AMD's and Intel's drivers."""

from pathlib import Path

from core.telemetry import sysfs
from core.telemetry.sysfs import AMD, INTEL, NVIDIA, Amd, Intel, PciCard
from tests.core.telemetry.cards import add_card

PCI_IDS = """\
# a comment
1001  Another maker
\t73bf  Not this one
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t73bf  Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]
\t\t1002 0e3a  A board
\t1638  Cezanne without brackets
8086  Intel Corporation
"""


def test_cards_are_found_and_outlets_are_not(tmp_path: Path) -> None:
    device = add_card(tmp_path, 0, INTEL, 0x46A6)
    add_card(tmp_path, 1, AMD, 0x73BF)
    (tmp_path / "card2").mkdir()

    found = sysfs.cards(tmp_path)

    assert [card.vendor for card in found] == [INTEL, AMD]
    assert found[0] == PciCard(INTEL, 0x46A6, device)


def test_without_sysfs_there_are_no_cards(tmp_path: Path) -> None:
    assert sysfs.cards(tmp_path / "missing") == []
    assert not sysfs.nvidia_without_driver(tmp_path / "missing")


def test_an_nvidia_card_without_a_driver_is_seen_by_its_class(tmp_path: Path) -> None:
    for name, vendor, kind in (("0000:00:1f.0", INTEL, "0x030000"), ("0000:01:00.1", NVIDIA, "0x040300")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"0x{vendor:04x}\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    assert not sysfs.nvidia_without_driver(tmp_path), "its sound device is no display"

    (tmp_path / "0000:01:00.1" / "class").write_text("0x030200\n")
    assert sysfs.nvidia_without_driver(tmp_path)


def test_a_model_is_named_by_the_systems_list(tmp_path: Path) -> None:
    listed = tmp_path / "pci.ids"
    listed.write_text(PCI_IDS)
    lists = (tmp_path / "missing", listed)

    card = PciCard(AMD, 0x73BF, tmp_path)
    assert sysfs.model_name(card, "AMD", lists) == "AMD Radeon RX 6800/6800 XT / 6900 XT"
    assert sysfs.model_name(PciCard(AMD, 0x1638, tmp_path), "AMD", lists) == "AMD Cezanne without brackets"
    assert sysfs.model_name(PciCard(INTEL, 0x73BF, tmp_path), "Intel", lists) == "Intel GPU 73bf"
    assert sysfs.model_name(card, "AMD", ()) == "AMD GPU 73bf"


def test_a_file_that_is_no_number_is_none(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("N/A\n")

    assert sysfs.number(tmp_path / "value") is None
    assert sysfs.number(tmp_path / "missing") is None


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


def test_a_card_that_tells_no_average_tells_its_power_of_now(tmp_path: Path) -> None:
    add_card(tmp_path, 0, AMD, 0x73BF, hwmon__hwmon3__power1_input=12_500_000)

    (reading,) = Amd(sysfs.cards(tmp_path)).read()

    assert reading.power_w == 12.5
    assert "no power" not in reading.why


def test_what_the_driver_does_not_tell_has_a_reason(tmp_path: Path) -> None:
    add_card(tmp_path, 0, AMD, 0x73BF, gpu_busy_percent=0)

    (reading,) = Amd(sysfs.cards(tmp_path)).read()

    assert reading.use_pct == 0.0
    assert reading.power_w is None
    assert "no power: the amdgpu driver does not tell it" in reading.why
    assert "no use" not in reading.why


def test_an_amd_card_whose_driver_tells_nothing_has_no_numbers(tmp_path: Path) -> None:
    add_card(tmp_path, 0, AMD, 0x73BF)

    (reading,) = Amd(sysfs.cards(tmp_path)).read()

    assert reading.use_pct is None and reading.temperature_c is None and reading.power_w is None
    assert reading.memory_used_bytes is None and reading.memory_total_bytes is None
    assert reading.why.count("does not tell it") == 4


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
