"""A run's numbers on disk stay within their bound, evenly over the run, and end with the last."""

import errno
from itertools import pairwise
from pathlib import Path

import pytest

from core.history.metrics_file import DECODER, Metric, MetricsFile
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.progress import EpochEnd
from tests.core.cluster.laptops import ANNA, BEN
from tests.core.history.test_record import RUN, step

MOST = 40_000


def epoch(number: int) -> ev.MemberEndedEpoch:
    end = EpochEnd(at_s=float(number), epoch=number, epochs=9, step=number, seconds=1.0, logs={"loss": 0.5})
    return ev.MemberEndedEpoch(run=RUN, device=BEN, epoch=end)


def read(path: Path) -> list[Metric]:
    return [DECODER.decode(line) for line in path.read_bytes().splitlines()]


def steps_of(path: Path, device: str) -> list[int]:
    found = read(path)
    return [
        event.progress.step
        for event in found
        if isinstance(event, ev.MemberProgressed) and event.device == device
    ]


@pytest.mark.parametrize("count", [1, 100, 999, 5_000, 20_001])
def test_steps_are_thinned_evenly_and_end_with_the_last(tmp_path: Path, count: int) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    file = MetricsFile(path, most_bytes=MOST)
    for number in range(count):
        file.add(step(number))
        file.add(ev.MemberProgressed(run=RUN, device=BEN, progress=step(number).progress))
        assert path.stat().st_size <= MOST
    for number in range(9):
        file.add(epoch(number))
    file.close()
    for device in (ANNA, BEN):
        kept = steps_of(path, device)
        assert (kept[0], kept[-1]) == (0, count - 1)
        gaps = {after - before for before, after in pairwise(kept[:-1])}
        assert len(gaps) <= 1, "evenly"
        assert len(kept) >= min(count, 20)
    epochs = [event.epoch.epoch for event in read(path) if isinstance(event, ev.MemberEndedEpoch)]
    assert epochs == list(range(9)), "a few epochs are all kept, however many steps there are"


def test_endless_epochs_stay_within_the_bound_too(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, most_bytes=MOST)
    for number in range(3_000):
        file.add(epoch(number))
    file.close()
    assert path.stat().st_size <= MOST
    kept = [event.epoch.epoch for event in read(path) if isinstance(event, ev.MemberEndedEpoch)]
    assert (kept[0], kept[-1]) == (0, 2_999)


def test_half_a_line_goes_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"type":"member_prog\n' + wire.to_json(step(0)) + b"\n")
    file = MetricsFile(path, most_bytes=MOST)
    for number in range(1, 500):
        file.add(step(number))
    file.close()
    assert steps_of(path, ANNA)[0] == 0


def test_a_disk_without_room_for_the_thinner_one_keeps_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, most_bytes=MOST)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        for number in range(500):
            file.add(step(number))
    before = steps_of(path, ANNA)
    assert before == list(range(len(before)))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    monkeypatch.undo()
    for number in range(len(before), 500):
        file.add(step(number))
    file.close()
    assert path.stat().st_size <= MOST
