"""A project that two laptops receive at once: one gives on to the other what it receives."""

from __future__ import annotations

import json

from bench.result import Row, median, spread
from bench.transfer_speed import Load, laptops, received
from tests.lab.lab import Lab

MBIT, ROUNDS = 240, 3
LOAD = Load(f"300 MB at {MBIT} Mbit/s", 1, 300_000_000, {})
MOST_SENT, MOST_TIME = 1.1, 1.2
"""Limits: the project's sizes that leave the starter; the time, by that of one receiver."""


def measure() -> list[Row]:
    sent, times = list[float](), list[float]()
    with laptops(MBIT, hosts=3) as (lab, (anna, *others)):
        script = lab.folder / "project" / "train.py"
        for number in range(ROUNDS):
            took_s = list[float]()
            for receivers in (others[:1], others):
                LOAD.write(script.parent, len(others) * number + len(receivers))
                before = _sent_bytes(lab)
                found = received(anna, receivers, script)
                took_s.append(max(last.at_s for _, last in found) - min(first.at_s for first, _ in found))
            sent.append((_sent_bytes(lab) - before) / (LOAD.files * LOAD.file_bytes))
            times.append(took_s[1] / took_s[0])
    return rows(sent, times)


def _sent_bytes(lab: Lab) -> int:
    """Everything that has left the starter's laptop, headers included."""
    (cable,) = json.loads(lab.network.do(0, "ip", "-json", "-statistics", "link", "show", "eth0"))
    return int(cable["stats64"]["tx"]["bytes"])


def rows(sent: list[float], times: list[float]) -> list[Row]:
    """``sent``: by the project's size. ``times``: by that of one receiver in the same round."""
    return [
        Row(
            what=f"{LOAD.words}, two receivers: bytes from the starter ÷ the project",
            value=median(sent),
            limit=MOST_SENT,
            note=spread(sent),
        ),
        Row(
            what=f"{LOAD.words}, two receivers: until both have it ÷ one receiver",
            value=median(times),
            limit=MOST_TIME,
            note=spread(times),
        ),
    ]
