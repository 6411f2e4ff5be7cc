"""A run's numbers on disk stay within their limit, evenly over the run, and end with the last."""

import errno
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.history.metrics_file import DECODER, Metric, MetricsFile, Thinned
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


def thin(many: int, most: int) -> tuple[int, ...]:
    thinned: Thinned[int] = Thinned(most)
    for number in range(many):
        thinned.add(number)
    return thinned.items


def test_few_points_stay_as_they_are() -> None:
    assert thin(5, 10) == (0, 1, 2, 3, 4)
    assert thin(0, 10) == ()


def test_one_point_cannot_show_a_line() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Thinned(1)


@given(many=st.integers(1, 3000), most=st.integers(2, 50))
def test_ends_stay_order_stays_and_no_gap_is_much_wider_than_the_others(many: int, most: int) -> None:
    kept = thin(many, most)
    assert len(kept) <= most
    assert kept[0] == 0
    assert kept[-1] == many - 1
    assert list(kept) == sorted(set(kept))
    gaps = {after - before for before, after in pairwise(kept[:-1])}
    assert len(gaps) <= 1
