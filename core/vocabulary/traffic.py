"""A run's traffic with other laptops: messages in both directions, and news of the links."""

from __future__ import annotations

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import EventTold, Launch, Message, Prepare, RunMessage


class Send(msgspec.Struct, frozen=True):
    """A message for a device, over the loopback if that is this node."""

    device: DeviceId
    message: Message


class From(msgspec.Struct, frozen=True):
    """A message with the authenticated device it came from."""

    device: DeviceId
    message: Message


class LinkBack(msgspec.Struct, frozen=True):
    """A device is linked: for the first time, or again with nothing lost."""

    device: DeviceId


class LinkAway(msgspec.Struct, frozen=True):
    """A device has been silent for a while. Messages to it wait until it is back."""

    device: DeviceId
    problem: Problem


class LinkLost(msgspec.Struct, frozen=True):
    """The link to a device has ended, and all messages under way are lost."""

    device: DeviceId
    problem: Problem


LinkNews = LinkBack | LinkAway | LinkLost


def run_of(message: Message) -> RunId | None:
    """The run that a message is about; None where it is about none."""
    match message:
        case Prepare(plan=plan) | Launch(plan=plan):
            return plan.run
        case EventTold(event=event):
            return event.run
        case RunMessage(run=run):
            return run
        case _:
            return None
