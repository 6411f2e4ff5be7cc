"""Steps and epochs of a run on disk, and its laptops' load, bounded: beyond the bound every second item is
dropped, evenly over the run.

Blocks: call only on the writer's thread.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec

from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed

Item = TypeVar("Item")

MOST_BYTES = 32 << 20
"""About 50,000 steps of two members: an hour and more of every step, a day of every sixteenth."""

Report = ev.MemberProgressed | ev.MemberEndedEpoch
Metric = Report | LaptopUsed
DECODER: msgspec.json.Decoder[Metric] = msgspec.json.Decoder(Metric)
_Key = tuple[type, DeviceId]


class MetricsFile:
    """Thins the kind of item that takes the most space, whenever the file exceeds its bound. Raises
    ``OSError``."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._most = most_bytes
        self._file: BinaryIO | None = None
        self._every: dict[type, int] = defaultdict(lambda: 1)
        self._bytes: dict[type, int] = defaultdict(int)
        self._seen: dict[_Key, int] = defaultdict(int)
        self._left_out: dict[_Key, Metric] = {}
        """The newest item of each key, if the file lacks it. ``close`` writes it: the last is always kept."""

    def add(self, event: Metric) -> None:
        kind = type(event)
        key = (kind, event.device)
        number = self._seen[key]
        self._seen[key] += 1
        if number % self._every[kind]:
            self._left_out[key] = event
            return
        self._left_out.pop(key, None)
        self._write(event)
        if sum(self._bytes.values()) > self._most:
            self._thin(max(self._bytes, key=lambda kind: self._bytes[kind]))

    def close(self) -> None:
        try:
            for event in self._left_out.values():
                self._write(event)
        finally:
            self._left_out.clear()
            self._shut()

    def _write(self, event: Metric) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Unbuffered: the last report is on disk when the laptop's battery is empty.
            self._file = self._path.open("ab", buffering=0)
        line = wire.to_json(event) + b"\n"
        self._file.write(line)
        self._bytes[type(event)] += len(line)

    def _thin(self, kind: type) -> None:
        """Drops every second item of ``kind``, of each member, and thins future ones at the same rate."""
        self._shut()
        self._bytes.clear()  # if the disk fails, thin again after as many further bytes
        sizes: dict[type, int] = defaultdict(int)
        places: dict[DeviceId, int] = defaultdict(int)
        thinner = self._path.with_name(self._path.name + ".thinner")
        try:
            with self._path.open("rb") as before, thinner.open("wb") as after:
                for line in before:
                    try:
                        event = DECODER.decode(line)
                    except msgspec.DecodeError:
                        continue  # half a line from a full disk
                    if type(event) is kind:
                        places[event.device] += 1
                        if places[event.device] % 2 == 0:
                            continue
                    after.write(line)
                    sizes[type(event)] += len(line)
            thinner.replace(self._path)
        except OSError:
            thinner.unlink(missing_ok=True)
            raise
        self._bytes = sizes
        self._every[kind] *= 2

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Thinned(Generic[Item]):
    """Keeps at most ``most`` items, every 2ⁿ-th, always with the first and the last. Memory stays bounded."""

    def __init__(self, most: int) -> None:
        if most < 2:
            raise ValueError(f"at least 2 points must remain: {most}")
        self._most = most
        self._step = 1
        self._seen = 0
        self._kept: list[Item] = []
        self._last: list[Item] = []

    def add(self, item: Item) -> None:
        if self._seen % self._step == 0:
            if len(self._kept) == self._most - 1:
                self._kept = self._kept[::2]
                self._step *= 2
            if self._seen % self._step == 0:
                self._kept.append(item)
                self._last = []
            else:
                self._last = [item]
        else:
            self._last = [item]
        self._seen += 1

    @property
    def items(self) -> tuple[Item, ...]:
        return (*self._kept, *self._last)
