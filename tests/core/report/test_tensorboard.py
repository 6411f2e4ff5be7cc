from __future__ import annotations

import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.report import tensorboard
from core.report.tensorboard import check_installed, member_folder, write_event_files
from core.vocabulary import events as ev
from core.vocabulary import run_folder, wire
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.run_folder import METRICS
from tests.core.cluster.laptops import ANNA, BEN
from tests.core.run.told import PLAN, epochs_of, run_told, steps_of

RUN = PLAN.run


def record(folder: Path, *reports: ev.MemberProgressed | ev.MemberEndedEpoch) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / METRICS).write_bytes(b"".join(wire.to_json(report) + b"\n" for report in reports))
    return folder


def progressed(device: DeviceId = ANNA, fit: int = 0, count: int = 3) -> list[ev.MemberProgressed]:
    steps = steps_of(count, fit=fit, grad_norm=0.5, wait_s=0.001)
    return [ev.MemberProgressed(run=RUN, device=device, progress=step) for step in steps]


def events(file: Path) -> Iterator[Any]:
    """Read like TensorBoard: lengths and checksums are checked."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    data = file.read_bytes()
    while data:
        (length,), (check,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        assert masked_crc32c(data[:8]) == check
        (check,) = struct.unpack("<I", data[12 + length : 16 + length])
        assert masked_crc32c(data[12 : 12 + length]) == check
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def scalars(file: Path) -> dict[str, list[tuple[int, Any]]]:
    found: dict[str, list[tuple[int, Any]]] = {}
    for event in events(file):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def files(logdir: Path) -> list[Path]:
    return sorted(path for path in logdir.rglob("*") if path.is_file())


def test_each_member_has_a_file_with_its_steps_and_epochs(tmp_path: Path) -> None:
    ends = [ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch) for epoch in epochs_of(2)]
    folder = record(tmp_path / "run", *progressed(), *ends, *progressed(BEN))
    logdir = write_event_files(run_told(), folder)
    anna, ben = files(logdir)
    assert [file.parent.name for file in (anna, ben)] == ["Anna-s-aaaaaaaa", "Ben-s-bbbbbbbb"]
    assert next(events(anna)).file_version == "brain.Event:2"
    found = scalars(anna)
    assert found["steps/loss"][0] == (1, 2.0)
    assert [step for step, _ in found["steps/loss"]] == [1, 2, 3]
    assert found["epochs/val_loss"] == [(10, pytest.approx(2.2)), (20, pytest.approx(1.1))]
    assert found["gradient/norm"] == [(1, 0.5), (2, 0.5), (3, 0.5)]
    assert found["speed/wait_s"][0] == (1, pytest.approx(0.001))
    assert "epochs/loss" not in scalars(ben)
    assert all(file.stat().st_mode & 0o077 == 0 for file in (anna, ben))


def test_a_second_fit_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    end = ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epochs_of(1)[0])
    logdir = write_event_files(run_told(), record(tmp_path / "run", *progressed(), end, *progressed(fit=1)))
    assert [step for step, _ in scalars(files(logdir)[0])["steps/loss"]] == [1, 2, 3, 11, 12, 13]


def test_a_script_that_fits_again_and_again_never_goes_back(tmp_path: Path) -> None:
    reports = [report for fit in range(4) for report in progressed(fit=fit, count=2)]
    logdir = write_event_files(run_told(), record(tmp_path / "run", *reports))
    assert [step for step, _ in scalars(files(logdir)[0])["steps/loss"]] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_member_that_reported_only_in_a_later_fit_begins_at_its_first_step(tmp_path: Path) -> None:
    logdir = write_event_files(run_told(), record(tmp_path / "run", *progressed(fit=1)))
    assert [step for step, _ in scalars(files(logdir)[0])["steps/loss"]] == [1, 2, 3]


def test_writing_again_replaces_what_was_there(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", *progressed())
    first = files(write_event_files(run_told(), folder))
    record(folder, *progressed(count=5))
    assert files(write_event_files(run_told(), folder)) == first
    assert len(scalars(first[0])["steps/loss"]) == 5


def test_values_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    file = tensorboard.EventFile(tmp_path / "member")
    (report,) = progressed(count=1)
    logs = {"loss": math.nan, "mae": 1.0}
    file.add(replace(report, progress=replace(report.progress, logs=logs)))
    file.close()
    found = scalars(files(tmp_path)[0])
    assert found["steps/mae"] == [(1, 1.0)]
    assert "steps/loss" not in found


def test_an_epoch_that_was_broken_off_is_no_point_among_epochs(tmp_path: Path) -> None:
    file = tensorboard.EventFile(tmp_path / "member")
    (end,) = epochs_of(1)
    for epoch in (end, replace(end, epoch=1, step=12, whole=False, steps=3, steps_in_epoch=10)):
        file.add(ev.MemberEndedEpoch(run=PLAN.run, device=ANNA, epoch=epoch))
    file.close()
    assert [step for step, _ in scalars(files(tmp_path)[0])["epochs/loss"]] == [10]


@pytest.mark.parametrize("name", ["../../evil", "/etc", "a/b\\c", "..", "\x00", "x" * 500, "", "Ännas 💻"])
def test_a_name_from_a_peer_never_becomes_a_path(name: str) -> None:
    for device in (ANNA, DeviceId("../../evil"), DeviceId("")):
        folder = member_folder(name, device)
        assert folder and len(folder) < 80
        assert all(char.isalnum() or char == "-" for char in folder)


def test_a_run_without_numbers_says_so(tmp_path: Path) -> None:
    with pytest.raises(TandemError) as caught:
        write_event_files(run_told(), record(tmp_path / "run"))
    assert caught.value.code == "nothing-to-show"


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", *progressed())
    (folder / run_folder.TENSORBOARD).write_text("in the way")
    with pytest.raises(TandemError) as caught:
        write_event_files(run_told(), folder)
    assert caught.value.code == "tensorboard-unwritten"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    with pytest.raises(TandemError) as caught:
        check_installed()
    assert "-m pip install 'tensorboard>=2.20'" in caught.value.fix


@pytest.mark.real
def test_event_files_are_written_without_tensorflow(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", *progressed())
    code = (
        "import sys; from pathlib import Path\n"
        "from core.report.tensorboard import write_event_files\n"
        "from tests.core.run.told import run_told\n"
        f"write_event_files(run_told(), Path({str(folder)!r}))\n"
        "sys.exit('tensorflow' in sys.modules)"
    )
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=120, check=False).returncode == 0
