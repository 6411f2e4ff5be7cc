"""One reading: use, traffic over real network cards, temperature."""

from pathlib import Path
from types import SimpleNamespace

from core.telemetry.gpus import Gpus
from core.telemetry.sampler import Sampler
from tests.core.samples import unsaid
from tests.core.telemetry.fake_system import FakeSystem


def test_a_reading_has_everything(tmp_path: Path) -> None:
    system = FakeSystem()
    system.sensors = {"acpitz": [30.0], "coretemp": [48.0, 51.0]}

    reading = system.sampler(tmp_path).sample()

    assert (reading.at_s, reading.cpu_pct) == (1_800_000_000.0, 12.5)
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (4 << 30, 16 << 30)
    assert reading.temperature_c == 51.0
    assert reading.disk_free_bytes == 7 << 30
    assert reading.battery_pct == 80.0
    assert reading.no_gpu == "CPU only: a test."
    assert unsaid(reading) == {"gpus"}, "a field of Reading that the sampler does not fill"


def test_a_battery_counts_only_while_the_laptop_runs_on_it(tmp_path: Path) -> None:
    system = FakeSystem()
    for plugged in (True, None):
        system.battery = SimpleNamespace(percent=9, power_plugged=plugged)
        reading = system.sampler(tmp_path).sample()
        assert reading.battery_pct is None and reading.has_battery
    system.battery = None
    reading = system.sampler(tmp_path).sample()
    assert reading.battery_pct is None and not reading.has_battery


def test_rates_are_bytes_a_second_since_the_reading_before(tmp_path: Path) -> None:
    system = FakeSystem()
    sampler = system.sampler(tmp_path)
    system.seconds += 2.0
    system.bytes["wlan0"] = (4000, 10_000)
    system.bytes["lo"] = (999_999, 999_999)

    reading = sampler.sample()

    assert (reading.sent_bytes_s, reading.received_bytes_s) == (2000.0, 5000.0)


def test_bridges_and_tunnels_do_not_count_beside_a_real_card(tmp_path: Path) -> None:
    (tmp_path / "wlan0" / "device").mkdir(parents=True)
    (tmp_path / "docker0").mkdir()
    system = FakeSystem()
    system.bytes["docker0"] = (0, 0)
    sampler = system.sampler(tmp_path)
    system.seconds += 1.0
    system.bytes.update(wlan0=(100, 200), docker0=(100, 200))

    assert sampler.sample().sent_bytes_s == 100.0


def test_a_card_that_counts_anew_gives_no_negative_rate(tmp_path: Path) -> None:
    system = FakeSystem()
    system.bytes["wlan0"] = (5000, 5000)
    sampler = system.sampler(tmp_path)
    system.seconds += 1.0
    system.bytes["wlan0"] = (10, 10)
    system.bytes["eth0"] = (7_000_000, 7_000_000)

    reading = sampler.sample()

    assert (reading.sent_bytes_s, reading.received_bytes_s) == (0.0, 0.0)


def test_no_sensors_no_temperature(tmp_path: Path) -> None:
    system = FakeSystem()
    for sensors in (None, {}, {"nvme": [40.0]}, {"coretemp": [0.0]}):
        system.sensors = sensors
        assert system.sampler(tmp_path).sample().temperature_c is None


def test_a_disk_that_cannot_be_asked_is_not_known(tmp_path: Path) -> None:
    system = FakeSystem()
    system.free = None
    assert system.sampler(tmp_path).sample().disk_free_bytes is None


def test_this_machine_is_read(tmp_path: Path) -> None:
    reading = Sampler(Gpus(None, ""), disk=tmp_path).sample()

    assert reading.disk_free_bytes
    assert 0 < reading.memory_used_bytes < reading.memory_total_bytes
    assert reading.sent_bytes_s >= 0.0
