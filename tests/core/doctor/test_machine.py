"""The doctor's findings about the laptop itself."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.doctor import machine
from core.telemetry.gpus import Gpus
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.readings import GpuReading, Reading
from core.vocabulary.settings import Settings
from core.walls.levels import Level
from tests.core.doctor.views import view
from tests.core.fake_node import HARDWARE, ME, OTHER, VERSIONS

NOW_S = 1_800_000_000.0


def reading(*gpus: str, at_s: float = NOW_S, no_gpu: str = "") -> Reading:
    return Reading(
        at_s=at_s,
        cpu_pct=0.0,
        memory_used_bytes=0,
        memory_total_bytes=1,
        sent_bytes_s=0.0,
        received_bytes_s=0.0,
        gpus=tuple(GpuReading(name=name) for name in gpus),
        no_gpu=no_gpu,
    )


def read(*gpus: str, no_gpu: str = "") -> ev.TelemetryReported:
    return ev.TelemetryReported(device=ME, reading=reading(*gpus, no_gpu=no_gpu))


def other_at(at_s: float) -> tuple[ev.Event, ...]:
    linked = ev.LinkUp(
        device=OTHER, name="other", address="10.0.0.2:27600", versions=VERSIONS, hardware=HARDWARE
    )
    return linked, ev.TelemetryReported(device=OTHER, reading=reading(at_s=at_s))


def test_an_nvidia_gpu_is_what_tensorflow_uses(tmp_path: Path) -> None:
    finding = machine.check_gpu(view(tmp_path, read("NVIDIA Test")))

    assert (finding.level, finding.what) == ("ok", "GPU: NVIDIA Test.")


def test_without_a_gpu_the_reason_is_given(tmp_path: Path) -> None:
    assert machine.check_gpu(view(tmp_path, read(no_gpu="CPU only: a test."))).what == "CPU only: a test."


def test_without_a_node_the_driver_itself_is_asked(tmp_path: Path) -> None:
    asked = view(tmp_path, port=None)

    assert machine.check_gpu(asked, lambda: Gpus(None, "CPU only: asked.")).what == "CPU only: asked."


def test_the_drivers_are_closed_after_the_check() -> None:
    class Driver(Gpus):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    driver = Driver(None, "CPU only: asked.")
    machine.check_gpu(view(Path(), port=None), lambda: driver)

    assert driver.is_closed


@pytest.mark.parametrize(("available", "level"), [(8 << 30, "ok"), (300 << 20, "warning")])
def test_little_memory_is_reported_before_a_run(tmp_path: Path, available: int, level: str) -> None:
    assert machine.check_memory(view(tmp_path), lambda: SimpleNamespace(available=available)).level == level


@pytest.mark.parametrize(
    ("at_s", "level"),
    [(NOW_S - 5.0, "ok"), (NOW_S + 5.0, "ok"), (NOW_S - 60.0, "warning"), (NOW_S + 60.0, "warning")],
)
def test_clocks_that_differ_are_named(tmp_path: Path, at_s: float, level: str) -> None:
    finding = machine.check_clock(view(tmp_path, *other_at(at_s)), lambda: NOW_S)

    assert finding.level == level
    if level == "warning":
        assert ("ahead of" if at_s < NOW_S else "behind") in finding.what
        assert "60 s" in finding.what


def test_a_clock_is_compared_with_linked_laptops_alone(tmp_path: Path) -> None:
    linked, told = other_at(NOW_S - 60.0)
    gone = ev.LinkDown(device=OTHER, problem=Problem(code="link-closed", what="The link closed."))

    for events in ((linked,), (linked, told, gone)):
        finding = machine.check_clock(view(tmp_path, *events), lambda: NOW_S)
        assert (finding.level, finding.what) == ("ok", "The clock is plausible.")


def test_a_clock_of_the_past_is_named(tmp_path: Path) -> None:
    assert machine.check_clock(view(tmp_path), lambda: 86_400.0).code == "clock-wrong"


def test_scripts_that_meet_through_tensorflow_are_sealed_where_namespaces_are_available(
    tmp_path: Path,
) -> None:
    finding = machine.check_sealing(view(tmp_path), lambda: "namespace")

    assert (finding.level, finding.code) == ("ok", "sealed")


def test_it_never_claims_that_a_run_is_sealed_where_it_cannot_be(tmp_path: Path) -> None:
    finding = machine.check_sealing(
        view(tmp_path), lambda: "", lambda: "user namespaces are switched off here"
    )

    assert (finding.level, finding.code) == ("warning", "not-sealed")
    assert "neither password nor encryption" in finding.what
    assert "namespaces are switched off here" in finding.what
    assert "All other scripts connect over TLS" in finding.fix


def test_the_reach_of_walls_follows_from_the_kernels_level(tmp_path: Path) -> None:
    told = [machine.check_walls(view(tmp_path), partial(Level, level, True)) for level in (7, 4, 2, 1)]
    assert [finding.code for finding in told] == ["walls", "walls-older", "walls-older", "no-walls"]
    assert [finding.level for finding in told] == ["ok", "note", "note", "warning"]
    assert "level 7" in told[0].what
    assert (
        "connect to any address" not in told[1].what
        and "end your other programs (until Linux 6.12)" in told[1].what
    )
    assert "connect to any address (until Linux 6.7)" in told[2].what
    assert "anything you can do" in told[3].what
    assert machine.check_walls(view(tmp_path), lambda: Level(7, False)).code == "no-walls"


def test_whether_the_laptop_would_stay_awake_is_reported(tmp_path: Path) -> None:
    kept, not_kept = (machine.check_sleep(view(tmp_path), lambda by=by: by) for by in ("GNOME", ""))  # type: ignore[misc]
    assert (kept.code, not_kept.code) == ("awake", "may-sleep")
    off = replace(view(tmp_path), settings=Settings(stay_awake=False))
    assert machine.check_sleep(off, lambda: "GNOME").code == "may-sleep"
