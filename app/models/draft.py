"""The run that a user is putting together on the Train screen, and the spec that follows from it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import ASK_AFTER_S, AWAY_S, Exchange, Role, RunSpec, StrategyKind, Wire
from core.vocabulary.state import Device, State


@dataclass(frozen=True, slots=True)
class Draft:
    """``left_out``: connected devices that the user takes out of the run. ``seed`` None: a new one.

    ``then``: the laptops of the earlier run that this one repeats, by the names they had.
    """

    script: str = ""
    arguments: str = ""
    left_out: frozenset[DeviceId] = frozenset()
    roles: dict[DeviceId, tuple[Role, ...]] = field(default_factory=dict)
    shares: dict[DeviceId, int] = field(default_factory=dict)
    strategy: StrategyKind | None = None
    seed: int | None = None
    wire: Wire = "f32"
    exchange: Exchange | None = None
    away_s: float = AWAY_S
    ask_after_s: float = ASK_AFTER_S
    downloads: bool = True
    open_port: bool = False
    """Accepted by this user, for one run."""
    accept_differences: bool = False
    then: dict[DeviceId, str] = field(default_factory=dict)


def as_then(entry: RunEntry, state: State) -> Draft:
    """As an earlier run was asked for; script and arguments alone where its record tells no more."""
    arguments = shlex.join(entry.arguments)
    spec = entry.spec
    if spec is None:
        return Draft(script=entry.source, arguments=arguments)
    then = dict(zip(entry.device_ids, entry.devices, strict=False))
    here = {device.device for device in candidates(state)}
    if state.me is not None:
        here.add(state.me.device)
    return Draft(
        script=entry.source,
        arguments=arguments,
        left_out=frozenset(here - then.keys()),
        roles={device: roles for device, roles in spec.roles.items() if Role.NONE not in roles},
        shares=_whole_shares(spec, tuple(then)),
        strategy=spec.strategy,
        seed=spec.seed,
        wire=spec.wire,
        exchange=spec.exchange,
        away_s=spec.away_s,
        ask_after_s=spec.ask_after_s,
        downloads=spec.downloads,
        accept_differences=spec.accept_differences,
        then=then,
    )


def _whole_shares(spec: RunSpec, devices: tuple[DeviceId, ...]) -> dict[DeviceId, int]:
    """A share for each device: on a command line one part of the whole is enough (25 %)."""
    missing = [device for device in devices if device not in spec.shares]
    if not spec.shares or spec.shares_total is None or not missing:
        return dict(spec.shares)
    rest = max(0, spec.shares_total - sum(spec.shares.values()))
    return {
        **{device: share * len(missing) for device, share in spec.shares.items()},
        **dict.fromkeys(missing, rest),
    }


def candidates(state: State) -> list[Device]:
    """Paired devices, those that could take part first."""
    paired = [device for device in state.devices.values() if device.paired]
    return sorted(paired, key=lambda device: why_not(device) != "")


def why_not(device: Device) -> str:
    """Why a paired device cannot take part just now, in a few words; ``""`` where it can."""
    if not device.linked:
        return "not connected"
    if device.problem is not None:
        return "no run possible"
    return "is busy with another run" if device.busy else ""


def taking_part(draft: Draft, state: State) -> tuple[DeviceId, ...]:
    """This laptop first, unless it is left out."""
    me = (state.me.device,) if state.me is not None and state.me.device not in draft.left_out else ()
    others = [device.device for device in candidates(state) if not why_not(device)]
    return (*me, *(device for device in others if device not in draft.left_out))


def standing_roles(draft: Draft, here: Sequence[DeviceId]) -> dict[DeviceId, tuple[Role, ...]]:
    """The fixed roles of those who are ``here``.

    While the fixed chief is away, workers are free to take its place: else nobody could train without it.
    """
    roles = {device: roles for device, roles in draft.roles.items() if device in here}
    away = any(Role.CHIEF in given for device, given in draft.roles.items() if device not in here)
    if away and not any(Role.CHIEF in given for given in roles.values()):
        return {device: given for device, given in roles.items() if given != (Role.WORKER,)}
    return roles


def split(arguments: str) -> tuple[str, ...] | Problem:
    """Words as a shell takes them."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError:
        return Problem(
            code="arguments",
            what="The arguments have a quotation mark without its partner.",
            fix='Close it: --name "two words".',
        )


def spec_of(draft: Draft, state: State) -> RunSpec | Problem:
    """What to give to ``PlanRun`` and ``StartRun``, or why that cannot be."""
    words = split(draft.arguments)
    if isinstance(words, Problem):
        return words
    here = taking_part(draft, state)
    if not here:
        return Problem(
            code="no-devices",
            what="No laptop takes part in the run.",
            fix="Give at least one of them a role.",
        )
    me = state.me.device if state.me is not None else None
    others = tuple(device for device in here if device != me)
    roles = standing_roles(draft, here)
    if me is not None and me not in here:
        roles[me] = (Role.NONE,)
    # Shares go for all or for none: one that left takes its share with it.
    shares = {device: share for device, share in draft.shares.items() if device in here}
    return RunSpec(
        script=draft.script,
        arguments=words,
        devices=others,
        solo=not others,
        roles=roles,
        shares=shares if len(shares) == len(here) > 1 else {},
        strategy=draft.strategy,
        seed=draft.seed,
        wire=draft.wire,
        exchange=draft.exchange,
        away_s=draft.away_s,
        ask_after_s=draft.ask_after_s,
        downloads=draft.downloads,
        open_port=draft.open_port,
        accept_differences=draft.accept_differences,
    )
