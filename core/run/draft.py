"""What the two machines of a run share. Data only."""

from __future__ import annotations

from dataclasses import dataclass

from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Message


@dataclass(frozen=True, slots=True)
class Send:
    """To the other side of a run; on this node's own behalf over the loopback."""

    device: DeviceId
    message: Message
