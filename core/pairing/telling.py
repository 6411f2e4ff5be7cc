"""What people see of a pairing: the pairing's own events as events of the node. Pure."""

from __future__ import annotations

from core.pairing.state import Began, CodeShown, Event, Failed, Paired, SaidSame
from core.vocabulary import events as ev


def told(event: Event) -> ev.Event | None:
    """None for ``Paired``: that is told once the pin is kept."""
    match event:
        case Began(incoming, name, address, device):
            return ev.PairingBegan(incoming=incoming, name=name, address=address, device=device)
        case CodeShown(device, name, code, warning):
            return ev.PairingCodeShown(device=device, name=name, code=code, warning=warning)
        case SaidSame():
            return ev.PairingAnswered()
        case Failed(device, problem):
            return ev.PairingEnded(device=device, problem=problem)
        case Paired():
            return None
