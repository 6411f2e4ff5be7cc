"""Cards as Linux lists them."""

from pathlib import Path

from core.telemetry import sysfs
from core.telemetry.sysfs import AMD, INTEL, NVIDIA, Card
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
    assert found[0] == Card(INTEL, 0x46A6, device)


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

    assert (
        sysfs.model_name(Card(AMD, 0x73BF, tmp_path), "AMD", lists) == "AMD Radeon RX 6800/6800 XT / 6900 XT"
    )
    assert sysfs.model_name(Card(AMD, 0x1638, tmp_path), "AMD", lists) == "AMD Cezanne without brackets"
    assert sysfs.model_name(Card(INTEL, 0x73BF, tmp_path), "Intel", lists) == "Intel GPU 73bf"
    assert sysfs.model_name(Card(AMD, 0x73BF, tmp_path), "AMD", ()) == "AMD GPU 73bf"


def test_a_file_that_is_no_number_is_none(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("N/A\n")

    assert sysfs.number(tmp_path / "value") is None
    assert sysfs.number(tmp_path / "missing") is None
