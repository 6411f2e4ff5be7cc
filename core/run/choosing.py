"""Which devices take part in a run and under which addresses they meet. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from core.cluster.tf_config import is_loopback
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.plan import RunSpec
from core.vocabulary.readings import Hardware
from core.vocabulary.state import Device, State


def choose_devices(spec: RunSpec, me: DeviceId, state: State) -> tuple[DeviceId, ...]:
    """This device first, then those asked for, or every paired one that is here and fits.

    Raises ``TandemError`` for an asked-for device that is unknown, not paired, not here, busy or unlike.
    """
    if spec.solo:
        return (me,)
    if not spec.devices:
        fit = (device.device for device in state.devices.values() if _why_not(device) is None)
        return (me, *fit)
    others = [device for device in dict.fromkeys(spec.devices) if device != me]
    for device in others:
        known = state.devices.get(device)
        if known is None:
            raise TandemError(
                code="device-unknown",
                what=f"No device {short(device)} is known here.",
                fix="Look at the list of devices (tandem devices) and pair it first.",
            )
        if error := _why_not(known):
            raise error
    return (me, *others)


def _why_not(device: Device) -> TandemError | None:
    name = device.shown_name
    if not device.paired:
        return TandemError(
            code="device-not-paired",
            what=f"{name} is not paired with this laptop.",
            fix="Pair it first: both people compare the same six digits.",
        )
    if not device.linked:
        return TandemError(
            code="device-offline",
            what=f"{name} is not connected" + (f": {device.problem.what}" if device.problem else "."),
            fix=f"See that {name} is on, awake and in the network, with Tandem running.",
        )
    if device.problem is not None:
        return TandemError.of(device.problem)
    if device.busy:
        return TandemError(
            code="device-busy",
            what=f"{name} has another run under way.",
            fix="Wait until that one has ended, or stop it there.",
        )
    return None


def names_of(me: DeviceId, state: State) -> dict[DeviceId, str]:
    """How each device is called here; this laptop by its own name."""
    names = {device.device: device.shown_name for device in state.devices.values()}
    return {**names, me: state.me.name if state.me else short(me)}


def hardware_of(me: DeviceId, state: State) -> dict[DeviceId, Hardware]:
    known = {device.device: device.hardware for device in state.devices.values() if device.hardware}
    return {**known, me: state.me.hardware} if state.me else known


def choose_hosts(
    devices: Sequence[DeviceId],
    me: DeviceId,
    peer_host: Callable[[DeviceId], str],
    own_host: Callable[[DeviceId], str],
    names: Mapping[DeviceId, str],
) -> dict[DeviceId, str]:
    """Where each device's tasks are reached: as its link reaches it. One device alone needs none.

    Another node on this very machine is linked over loopback; where others are elsewhere, it is reached at
    this machine's address. Raises ``TandemError`` for a device whose link went away.
    """
    others = [device for device in devices if device != me]
    if len(devices) < 2:
        return {}
    hosts = {device: peer_host(device) for device in others}
    for device, host in hosts.items():
        if not host:
            raise TandemError(
                code="device-offline",
                what=f"{names.get(device) or short(device)} is not connected any more.",
                fix="See that it is on, awake and in the network, and train again.",
            )
    mine = [own_host(device) for device in others]
    outside = [host for host in mine if host and not is_loopback(host)]
    own = (outside or mine)[0]
    if outside:
        hosts = {device: own if is_loopback(host) else host for device, host in hosts.items()}
    return {**hosts, me: own} if me in devices else hosts
