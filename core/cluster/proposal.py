"""Which device gets which role: what the user fixed, checked, and the rest proposed by speed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.plan import Role, StrategyKind
from core.vocabulary.readings import Hardware

Roles = dict[DeviceId, tuple[Role, ...]]


def propose_roles(
    devices: Sequence[DeviceId],
    *,
    fixed: Mapping[DeviceId, tuple[Role, ...]],
    hardware: Mapping[DeviceId, Hardware],
    strategy: StrategyKind,
    parameter_server: bool = False,
    names: Mapping[DeviceId, str] | None = None,
) -> Roles:
    """Roles of every device that takes part, the chief's first. ``devices``: the starter's first.

    The fastest device without a fixed role becomes chief; the starter's where two are alike.
    ``parameter_server``: the script asks for one, so the chief's laptop also holds ``ps`` unless the user
    placed it. Raises ``TandemError`` for roles that no cluster can have.
    """
    named = {device: (names or {}).get(device) or short(device) for device in [*devices, *fixed]}
    _check_fixed(devices, fixed, strategy, named)
    here = [device for device in devices if Role.NONE not in fixed.get(device, ())]
    if not here:
        raise _error("no-devices", "No device takes part in the run.", "Give at least one of them a role.")
    free = [device for device in here if not fixed.get(device)]
    roles: Roles = {device: fixed.get(device) or (Role.WORKER,) for device in here}
    chiefs = [device for device in here if Role.CHIEF in roles[device]]
    if not chiefs:
        if not free:
            raise _error(
                "no-chief",
                "No device is the chief, and every device's role is fixed.",
                f"Make one of {_listed(named[device] for device in here)} the chief.",
            )
        chiefs = [max(free, key=lambda device: _speed(hardware.get(device)))]
        roles[chiefs[0]] = (Role.CHIEF,)
    if parameter_server and strategy == "own":
        _add_parameter_server(roles, chiefs[0], free)
    return {chiefs[0]: roles.pop(chiefs[0]), **roles}


def _check_fixed(
    devices: Sequence[DeviceId],
    fixed: Mapping[DeviceId, tuple[Role, ...]],
    strategy: StrategyKind,
    named: Mapping[DeviceId, str],
) -> None:
    for device, roles in fixed.items():
        name = named[device]
        if device not in devices:
            raise _error(
                "role-without-device",
                f"{name} has a role but does not take part in this run.",
                f"Add {name} to the run's devices, or take its role away.",
            )
        if Role.NONE in roles and len(roles) > 1:
            raise _error(
                "role-and-none",
                f"{name} cannot have a role and take no part.",
                "Choose one of the two.",
            )
        for role in roles:
            if strategy == "managed" and role in (Role.PS, Role.EVALUATOR):
                raise _error(
                    "role-needs-own-strategy",
                    f"{name} is {role}, but this script trains with fit, where every device computes.",
                    f"Make {name} chief or worker. {role} is for scripts that build their own strategy.",
                )
    chiefs = [named[device] for device, roles in fixed.items() for role in roles if role is Role.CHIEF]
    if len(chiefs) > 1:
        raise _error(
            "two-chiefs",
            f"There can be one chief, and {_listed(chiefs)} were made chief.",
            "Make all but one of them workers.",
        )


def _add_parameter_server(roles: Roles, chief: DeviceId, free: Sequence[DeviceId]) -> None:
    if not any(Role.PS in given for given in roles.values()):
        roles[chief] = (*roles[chief], Role.PS)
    if not any(Role.WORKER in given for given in roles.values()):
        holder = next((device for device in free if device != chief), chief)
        roles[holder] = (*roles[holder], Role.WORKER)


def _speed(hardware: Hardware | None) -> tuple[int, int, int]:
    if hardware is None:
        return (-1, 0, 0)
    return (len(hardware.gpus), hardware.cores, hardware.memory_bytes >> 30)


def _listed(names: Iterable[str]) -> str:
    words = list(names)
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"


def _error(code: str, what: str, fix: str) -> TandemError:
    return TandemError(code=code, what=what, fix=fix)
