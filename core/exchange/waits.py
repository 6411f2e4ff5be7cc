"""Waits under way: which members they need, and whether a waiting thread reads what arrives itself."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from core.exchange import machine
from core.exchange.channel import Channel
from core.exchange.pack import Pack
from core.exchange.state import Key, State, Waiting
from core.session.turns import ReadTurns

SHORT_BYTES = 2**18
"""Most bytes that a waiting thread reads itself: they fit into the connection's buffers until it reads."""

Wait = tuple[Sequence[Key], float]
"""The keys, and when it began, by ``time.monotonic``."""


def turns_of(
    keys: Sequence[Key], state: State, channels: Collection[Channel], *, is_only: bool
) -> ReadTurns | None:
    """The turns of a wait that can read itself: the only one (``is_only``), for few bytes from one member.
    None: the channels' threads read."""
    calls = [meeting.call for key in keys if (meeting := state.meetings.get(key))]
    sizes = [call.nbytes for call in calls if call is not None]
    is_short = len(sizes) == len(keys) and sum(sizes) <= SHORT_BYTES
    every = [channel.session.turns for channel in channels]
    if is_only and len(every) == 1 and is_short:
        return every[0]
    for turns in every:
        turns.read_on()
    return None


def awaited(
    state: State, waits: Sequence[Wait], packs: Mapping[Key, Pack], channels: Mapping[int, Channel]
) -> list[Waiting]:
    """Members that these waits still need something from, by rank."""
    now_s = time.monotonic()
    since_s = dict.fromkeys(channels, now_s)
    needs: set[int] = set()
    for keys, began_s in waits:
        for rank in {rank for key in keys for rank, _ in machine.missing(state, key)}:
            needs.add(rank)
            since_s[rank] = min(since_s[rank], began_s)
    wanted = {key for keys, _ in waits for key in keys if key in packs}
    found = []
    for rank in sorted(needs):
        progress = [packs[key].progress(rank) for key in wanted]
        status = channels[rank].status
        found.append(
            Waiting(
                rank=rank,
                since_s=now_s - since_s[rank],
                bytes_come=sum(come for come, _ in progress),
                bytes_total=sum(total for _, total in progress),
                connection=status.connection,
                heard_s=status.heard_s,
            )
        )
    return found
