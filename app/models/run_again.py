"""The spec of an earlier run, to repeat or resume it. Pure; for terminal and window."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from msgspec.structs import replace

from app.words.device_names import name_of
from core.run.abilities import why_not
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Phase, Stopped, is_followed
from core.vocabulary.plan import Moment, Plan, Role, RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State
from core.vocabulary.text import plain

MOST_ACCEPTED = 200
"""The newest codes with accepted differences that are remembered."""

_REFUSED = ("consent-refused", "no-consent", "asked-too-often", "device-busy", "not-prepared")
"""Codes of runs in which another laptop did not take part."""
_FIX = "Pair it again (tandem pair), or say who is to take part now: --with NAME,…, or --solo."


def may_go_on(entry: RunEntry) -> bool:
    """Whether it ended early, wherever it was started: then it can continue from a checkpoint."""
    return isinstance(entry.phase, Stopped | Failed)


def where_on(run: RunId, ours: Moment | None, state: State) -> tuple[Moment | None, str]:
    """The newest known checkpoint of a run, and the other laptop that has it; ``""``: here."""
    other = state.checkpoints.get(run)
    if other is None or (ours is not None and other.moment.order <= ours.order):
        return ours, ""
    return other.moment, name_of(state, other.device)


def spec_of(
    entry: RunEntry, state: State, *, others_said: bool = False, resumes: bool = False, button: str = ""
) -> RunSpec:
    """With exactly the laptops that took part. Raises ``TandemError`` if the run can't be repeated here.

    ``resumes``: another laptop's run may be resumed here, with the project that came with it (no script).
    ``others_said``: the caller names the members, so nobody of that run is missing. ``button``: as in
    ``with_other_ways``.
    """
    if not entry.source and not resumes:
        raise TandemError(
            code="run-of-another",
            what=f"The run {entry.run} was started on another laptop, and its script is there.",
            fix="Run it again there, or name a script of this laptop.",
        )
    if entry.spec is None and entry.source:  # recorded by an earlier Tandem
        return RunSpec(script=entry.source, arguments=entry.arguments)
    me = state.me.device if state.me is not None else None
    then = dict(zip(entry.device_ids, entry.devices, strict=False))
    others = {device: name for device, name in then.items() if device != me}
    for device, name in others.items():
        known = state.devices.get(device)
        if not others_said and (known is None or not known.paired):
            raise TandemError(
                code="not-paired",
                what=f"{plain(name, 40)} took part then but is no longer paired with this laptop.",
                fix=f"Pair it again. {_other_ways(entry.run, others, state, button)}" if resumes else _FIX,
            )
    spec = entry.spec or RunSpec(script="", arguments=entry.arguments)
    return replace(spec, script=entry.source, devices=tuple(others), solo=not others)


def with_other_ways(problem: Problem, spec: RunSpec, state: State, button: str = "") -> Problem:
    """``problem``, which prevents resuming a run, with the ways to resume it without the laptop that causes
    it, if one does. ``button``: resumes it on this laptop alone."""
    known = [state.devices.get(device) for device in spec.devices]
    absent = {why.problem.code for device in known if device is not None and (why := why_not(device))}
    is_absent = problem.code in {"device-unknown", *absent}
    if spec.resume is None or not (is_absent or problem.code in _REFUSED):
        return problem
    ways = _other_ways(spec.resume, spec.devices if is_absent else (), state, button)
    return replace(problem, fix=f"{problem.fix} {ways}")


def _other_ways(run: RunId, others: Iterable[DeviceId], state: State, button: str) -> str:
    """``others``: laptops of the run; those that can take part now are named."""
    known = [state.devices[device] for device in others if device in state.devices]
    names = ",".join(plain(device.shown_name, 40) for device in known if why_not(device) is None)
    command = f"tandem resume {run} --with {shlex.quote(names) if names else 'NAME,…'}"
    if button:
        return f"To resume without it, press “{button}”, or use a terminal: {command}"
    return f"To resume without it: {command}, or --solo for this laptop alone."


def alone(spec: RunSpec, me: DeviceId | None) -> RunSpec:
    """The same spec on this laptop alone, without shares and without settings for the others."""
    own = {device: roles for device, roles in spec.roles.items() if device == me and Role.CHIEF in roles}
    return replace(spec, solo=True, devices=(), roles=own, shares={}, shares_total=None, opens={})


def alone_helps(phase: Phase, plan: Plan | None, state: State) -> bool:
    """Whether a run that ended early could go on here alone, if the other laptops prevent resuming it as it
    was."""
    me = state.me.device if state.me is not None else None
    members = [member.device for member in plan.members] if plan is not None else []
    if not isinstance(phase, Stopped | Failed) or is_followed(phase) or me not in members:
        return False
    refused = isinstance(phase, Failed) and phase.problem.code in _REFUSED
    return len(members) > 1 and (refused or any(_absent(device, state) for device in members if device != me))


def _absent(device: DeviceId, state: State) -> bool:
    known = state.devices.get(device)
    return known is None or why_not(known) is not None


def withdrawing(code: str, state: State) -> ChangeSettings:
    """Stop accepting known differences for this code."""
    known = state.me.settings.accepted if state.me is not None else ()
    return ChangeSettings(change=SettingsChange(accepted=tuple(each for each in known if each != code)))


def accepting(code: str, state: State) -> ChangeSettings:
    """Accept known differences for this code (``Plan.code``) from now on."""
    known = state.me.settings.accepted if state.me is not None else ()
    kept = [each for each in known if each != code][-MOST_ACCEPTED + 1 :]
    return ChangeSettings(change=SettingsChange(accepted=(*kept, code)))
