"""Turns a user's request into the plan that every member agrees on: roles, shares, ports. Pure, except for
the fresh id and seed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict, replace

from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId, short
from core.vocabulary.plan import (
    COMPUTING,
    Exchange,
    Member,
    Plan,
    Role,
    RunSpec,
    StrategyKind,
    Task,
)
from core.vocabulary.text import listed

FIRST_PORT = 20_000
"""Trainers' ports start above this, by rank; a member whose port is taken chooses another."""
LAST_PORT = 32_000
"""Below the ephemeral range (32768–60999), from which the system hands out ports at any time."""
LEAST_AWAY_S = 1.0
MOST_PATIENT_S = 7 * 24 * 3600.0

_RANKS = (Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR)
_SEEDS = 1 << 31
_ROOM = 1000
"""More tasks than any run has."""

Roles = dict[DeviceId, tuple[Role, ...]]


def new_run_id(now: datetime | None = None) -> RunId:
    """A new id that sorts by time (UTC) and is unique across laptops."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
    return RunId(f"{moment}-{secrets.token_hex(4)}")


def make_plan(
    spec: RunSpec,
    *,
    starter: DeviceId,
    project: ProjectId,
    script: str,
    strategy: StrategyKind,
    roles: Roles,
    names: Mapping[DeviceId, str],
    hosts: Mapping[DeviceId, str],
    mirrored_loop: bool = False,
    run: RunId | None = None,
    first_port: int | None = None,
) -> Plan:
    """The plan with requested ports. ``roles``: see ``propose_roles``; chief's device first.

    ``mirrored_loop``: a script with an ``own`` strategy uses only mirrored ones, so its replicas can use
    Tandem's exchange. ``first_port`` differs for each run: ports are not held while TensorFlow loads, so two
    runs starting together on one machine could choose the same one.

    Raises ``TandemError`` for invalid shares or an invalid seed.
    """
    first_port = first_port or FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT - _ROOM)
    tasks: list[Task] = []
    for role in _RANKS:
        holders = [device for device, given in roles.items() for each in given if each is role]
        for index, device in enumerate(holders):
            port = first_port + len(tasks)
            tasks.append(Task(device=device, role=role, index=index, host=hosts.get(device, ""), port=port))
    if len(tasks) == 1:
        tasks = [replace(tasks[0], host="", port=0)]
    in_order = dict.fromkeys(task.device for task in tasks)
    shares = _shares(spec, roles, names)
    for device in spec.opens.keys() - in_order.keys():
        raise TandemError(
            code="asks-nobody",
            what=f"--open names {names.get(device) or short(device)}, which is not in this run.",
            fix="Add it to the run, or remove that --open.",
        )
    members = tuple(
        Member(
            device=device,
            name=names.get(device) or short(device),
            share=shares[device],
            opens=spec.opens.get(device, ()),
        )
        for device in in_order
    )
    _check_patience(spec.away_s, "for a silent laptop", least_s=LEAST_AWAY_S)
    _check_patience(spec.go_on_s, "before it goes on", least_s=0.0)
    _check_patience(spec.ask_after_s, "before it asks", least_s=0.0)
    return Plan(
        **asdict(spec.options),
        run=run or new_run_id(),
        starter=starter,
        project=project,
        script=script,
        arguments=spec.arguments,
        strategy=strategy,
        members=members,
        tasks=tuple(tasks),
        balance=strategy == "managed" and len(members) > 1 and not spec.shares,
        seed=_seed(spec.seed),
        exchange=_exchange(tasks, takes_part=strategy == "managed" or mirrored_loop),
    )


def _check_patience(seconds: float, what: str, *, least_s: float) -> None:
    if not least_s <= seconds <= MOST_PATIENT_S:
        raise TandemError(
            code="bad-patience",
            what=f"A run cannot wait {seconds:g} s {what}.",
            fix=f"Choose at least {least_s:g} s, and at most {MOST_PATIENT_S / 3600:.0f} hours.",
        )


def _exchange(tasks: Sequence[Task], *, takes_part: bool) -> Exchange:
    """Parameter servers, evaluators and a script's other own strategies need TensorFlow's runtime."""
    if len(tasks) == 1:
        return "tensorflow"
    return "tls" if takes_part and all(task.role in COMPUTING for task in tasks) else "sealed"


def _shares(spec: RunSpec, roles: Roles, names: Mapping[DeviceId, str]) -> dict[DeviceId, int]:
    if not spec.shares or len(roles) == 1:  # a single laptop shares with nobody
        return {device: max(1, _computing(given)) for device, given in roles.items()}
    for device, share in spec.shares.items():
        name = names.get(device) or short(device)
        if device not in roles:
            raise _bad_shares(f"{name} has a share but does not take part in this run.")
        if not 0 <= share < _SEEDS:
            raise _bad_shares(f"{name}'s share is {share}, which is not a number of rows.")
    missing = [device for device in roles if device not in spec.shares]
    if missing and spec.shares_total is not None:
        rest = spec.shares_total - sum(spec.shares.values())
        if rest < 0:
            raise _bad_shares(f"The shares add up to more than {spec.shares_total}.")
        parts = {device: max(1, _computing(roles[device])) for device in missing}
        given = {device: share * sum(parts.values()) for device, share in spec.shares.items()}
        return {**given, **{device: rest * part for device, part in parts.items()}}
    if missing:
        raise _bad_shares(f"{names.get(missing[0]) or short(missing[0])} has no share, but others have one.")
    if not any(spec.shares.values()):
        raise _bad_shares("All shares are 0: nobody would compute anything.")
    return dict(spec.shares)


def _computing(given: Sequence[Role]) -> int:
    return sum(role in COMPUTING for role in given)


def _bad_shares(what: str) -> TandemError:
    return TandemError(
        code="bad-shares",
        what=what,
        fix="Give every device a share (such as 48 and 16), or give one of them a part of the whole "
        "(25 % or 16/64), or set no shares.",
    )


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbelow(_SEEDS)
    if not 0 <= seed < _SEEDS:
        raise TandemError(
            code="bad-seed",
            what=f"{seed} is not a valid seed.",
            fix=f"Choose a whole number from 0 to {_SEEDS - 1}.",
        )
    return seed


# --- roles -------------------------------------------------------------------------------------------------


def propose_roles(
    devices: Sequence[DeviceId],
    *,
    fixed: Mapping[DeviceId, tuple[Role, ...]],
    strategy: StrategyKind,
    parameter_server: bool = False,
    names: Mapping[DeviceId, str] | None = None,
) -> Roles:
    """Roles of every participating device, the chief first. ``devices``: the starter first.

    Security invariant: the first device without a fixed role becomes chief, if possible the starter. A device
    cannot claim the role, since all members take over the chief's state. ``parameter_server``: the script
    asks for one, so the chief's laptop also holds ``ps`` unless the user placed it. Raises ``TandemError``
    for an impossible combination of roles.
    """
    named = {device: (names or {}).get(device) or short(device) for device in [*devices, *fixed]}
    _check_fixed(devices, fixed, strategy, named)
    here = [device for device in devices if Role.NONE not in fixed.get(device, ())]
    if not here:
        raise _bad_roles(
            "no-devices", "No device takes part in the run.", "Give at least one of them a role."
        )
    free = [device for device in here if not fixed.get(device)]
    roles: Roles = {device: fixed.get(device) or (Role.WORKER,) for device in here}
    chiefs = [device for device in here if Role.CHIEF in roles[device]]
    if not chiefs:
        if not free:
            raise _bad_roles(
                "no-chief",
                "No device is the chief, and every device's role is fixed.",
                f"Make one of {listed(named[device] for device in here)} the chief.",
            )
        chiefs = free[:1]
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
            raise _bad_roles(
                "role-without-device",
                f"{name} has a role but does not take part in this run.",
                f"Add {name} to the run's devices, or take its role away.",
            )
        if Role.NONE in roles and len(roles) > 1:
            raise _bad_roles(
                "role-and-none",
                f"{name} cannot have a role and take no part.",
                "Choose one of the two.",
            )
        for role in roles:
            if strategy == "managed" and role in (Role.PS, Role.EVALUATOR):
                raise _bad_roles(
                    "role-needs-own-strategy",
                    f"{name} is {role}, but this script trains with fit, where every device computes.",
                    f"Make {name} chief or worker. {role} is for scripts that build their own strategy.",
                )
    chiefs = [named[device] for device, roles in fixed.items() for role in roles if role is Role.CHIEF]
    if len(chiefs) > 1:
        raise _bad_roles(
            "two-chiefs",
            f"There can be one chief, and {listed(chiefs)} were made chief.",
            "Make all but one of them workers.",
        )


def _add_parameter_server(roles: Roles, chief: DeviceId, free: Sequence[DeviceId]) -> None:
    if not any(Role.PS in given for given in roles.values()):
        roles[chief] = (*roles[chief], Role.PS)
    if not any(Role.WORKER in given for given in roles.values()):
        holder = next((device for device in free if device != chief), chief)
        roles[holder] = (*roles[holder], Role.WORKER)


def _bad_roles(code: str, what: str, fix: str) -> TandemError:
    return TandemError(code=code, what=what, fix=fix)
