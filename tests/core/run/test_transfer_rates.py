"""What is known of a laptop's network is still known after a restart."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.run.transfer_rates import KEPT, TransferRates
from core.vocabulary.ids import DeviceId

ANNA, BEN = DeviceId("a" * 32), DeviceId("b" * 32)


def test_the_last_rate_of_each_laptop_is_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    rates = TransferRates(path)
    assert rates.get(ANNA) == 0.0
    rates.put(ANNA, 1e6)
    rates.put(BEN, 2e6)
    rates.put(ANNA, 3e6)
    again = TransferRates(path)
    assert (again.get(ANNA), again.get(BEN)) == (3e6, 2e6)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_the_last_laptops_are_kept(tmp_path: Path) -> None:
    rates = TransferRates(tmp_path / "rates.json")
    for number in range(KEPT + 1):
        rates.put(DeviceId(f"{number:032x}"), 1e6)
    assert rates.get(DeviceId(f"{0:032x}")) == 0.0
    assert rates.get(DeviceId(f"{1:032x}")) == rates.get(DeviceId(f"{KEPT:032x}")) == 1e6


@pytest.mark.parametrize("odd", [b"", b'{"a": "x"}', b"[1]", b'{"%s": -5}' % ANNA.encode(), b"\xff"])
def test_a_damaged_file_is_as_good_as_none_and_mends_itself(tmp_path: Path, odd: bytes) -> None:
    path = tmp_path / "rates.json"
    path.write_bytes(odd)
    path.chmod(0o600)
    rates = TransferRates(path)
    assert rates.get(ANNA) == 0.0
    rates.put(ANNA, 1e6)
    assert rates.get(ANNA) == 1e6


def test_a_failing_disk_costs_only_the_record(tmp_path: Path) -> None:
    rates = TransferRates(tmp_path / "no such folder" / "rates.json")
    rates.put(ANNA, 1e6)
    assert rates.get(ANNA) == 0.0
