"""Whether a laptop can take part in a run.

Checked before any user is asked. Imports little: the window asks it, too.
"""

from __future__ import annotations

from core.vocabulary.errors import TandemError
from core.vocabulary.state import Device


def why_not(device: Device, *, goes_on: bool = False) -> TandemError | None:
    """Why a laptop cannot take part in a run that begins now; None: it can.

    ``goes_on``: the run goes on automatically. A linked laptop need not be paired then: the lost starter
    introduced it for that (``core.run.introductions``).
    """
    name = device.shown_name
    if not device.paired and not (goes_on and device.linked):
        return TandemError(
            code="device-not-paired",
            what=f"{name} is not paired with this laptop.",
            fix="Pair it first: both people compare the same six digits.",
        )
    if not device.linked:
        return TandemError(
            code="device-offline",
            what=f"{name} is not connected" + (f": {device.problem.what}" if device.problem else "."),
            fix=f"Make sure that {name} is on, awake and connected, with Tandem running.",
        )
    if device.problem is not None:
        return TandemError.of(device.problem)
    if device.busy:
        return TandemError(
            code="device-busy",
            what=f"{name} is busy with another run.",
            fix="Wait until that one has ended, or stop it there.",
        )
    return None
