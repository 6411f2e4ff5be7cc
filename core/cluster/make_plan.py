"""From what a user asks for to the plan that every member agrees on. Pure, but for the fresh id and seed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from core.cluster.proposal import Roles
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId, short
from core.vocabulary.plan import (
    COMPUTING,
    DEFAULT_EXCHANGE,
    Member,
    Plan,
    PlannedExchange,
    Role,
    RunSpec,
    StrategyKind,
    Task,
)

FIRST_PORT = 20_000
"""Trainers' ports are asked for above this, by rank; a member whose port is taken names another."""
LAST_PORT = 32_000
"""Below the ephemeral range (32768–60999), from which the system hands out ports at any time."""
LEAST_AWAY_S = 1.0
MOST_PATIENT_S = 7 * 24 * 3600.0

_RANKS = (Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR)
_SEEDS = 1 << 31
_ROOM = 1000
"""More tasks than any run has."""


def new_run_id(now: datetime | None = None) -> RunId:
    """Sorts by time (UTC), and no two laptops make the same one."""
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
    seals: bool = True,
    run: RunId | None = None,
    first_port: int | None = None,
) -> Plan:
    """The plan with ports as they will be asked for. ``roles``: see ``propose_roles``; chief's device first.

    ``mirrored_loop``: a script with ``own`` strategy uses MirroredStrategy alone, whose replicas can meet by
    the exchange. ``seals``: TensorFlow's port can be sealed on every laptop. ``first_port`` is another one
    for each run: while TensorFlow loads, nobody holds its port, and two runs that begin at the same time on
    one machine would choose the same.

    Raises ``TandemError`` for shares, a seed or an exchange that cannot be.
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
    members = tuple(
        Member(device=device, name=names.get(device) or short(device), share=shares[device])
        for device in in_order
    )
    return Plan(
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
        wire=spec.wire,
        exchange=_exchange(spec, tasks, takes_part=strategy == "managed" or mirrored_loop, seals=seals),
        downloads=spec.downloads,
        away_s=_patience(spec.away_s, "away", least_s=LEAST_AWAY_S),
        ask_after_s=_patience(spec.ask_after_s, "before it asks", least_s=0.0),
        accept_differences=spec.accept_differences,
    )


def _patience(seconds: float, what: str, *, least_s: float) -> float:
    if not least_s <= seconds <= MOST_PATIENT_S:
        raise TandemError(
            code="bad-patience",
            what=f"A run cannot wait {seconds:g} s {what}.",
            fix=f"Choose at least {least_s:g} s, and at most {MOST_PATIENT_S / 3600:.0f} hours.",
        )
    return seconds


def _exchange(spec: RunSpec, tasks: Sequence[Task], *, takes_part: bool, seals: bool) -> PlannedExchange:
    if takes_part and all(task.role in COMPUTING for task in tasks):
        return "tensorflow" if len(tasks) == 1 else spec.exchange or DEFAULT_EXCHANGE
    if spec.exchange == "tls":
        raise TandemError(
            code="exchange-needs-managed",
            what="A script that brings another strategy than MirroredStrategy meets by TensorFlow, which "
            "--exchange tls replaces; so do parameter servers and evaluators.",
            fix="Leave --exchange away, or let Tandem share the script's fit: --strategy managed.",
        )
    return "sealed" if seals and len(tasks) > 1 else "tensorflow"


def _shares(spec: RunSpec, roles: Roles, names: Mapping[DeviceId, str]) -> dict[DeviceId, int]:
    if not spec.shares or len(roles) == 1:  # one laptop alone shares with nobody
        return {device: max(1, _computing(given)) for device, given in roles.items()}
    for device, share in spec.shares.items():
        name = names.get(device) or short(device)
        if device not in roles:
            raise _bad_shares(f"{name} has a share but does not take part in this run.")
        if not 0 <= share < _SEEDS:
            raise _bad_shares(f"{name}'s share is {share}, which is no number of rows.")
    missing = [device for device in roles if device not in spec.shares]
    if missing and spec.shares_total is not None:
        rest = spec.shares_total - sum(spec.shares.values())
        if rest < 0:
            raise _bad_shares(f"The shares add up to more than {spec.shares_total}.")
        parts = {device: max(1, _computing(roles[device])) for device in missing}
        given = {device: share * sum(parts.values()) for device, share in spec.shares.items()}
        return {**given, **{device: rest * part for device, part in parts.items()}}
    if missing:
        raise _bad_shares(f"{names.get(missing[0]) or short(missing[0])} has no share, and others have one.")
    if not any(spec.shares.values()):
        raise _bad_shares("All shares are 0: nobody would compute anything.")
    return dict(spec.shares)


def _computing(given: Sequence[Role]) -> int:
    return sum(role in COMPUTING for role in given)


def _bad_shares(what: str) -> TandemError:
    return TandemError(
        code="bad-shares",
        what=what,
        fix="Give every device of the run a share (48 and 16, say), one of them its part of the whole "
        "(25 % or 16/64), or none of them any.",
    )


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbelow(_SEEDS)
    if not 0 <= seed < _SEEDS:
        raise TandemError(
            code="bad-seed",
            what=f"{seed} cannot be a seed.",
            fix=f"Choose a whole number from 0 to {_SEEDS - 1}.",
        )
    return seed
