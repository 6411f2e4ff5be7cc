"""What an earlier run was asked for, to run it again or to resume it. Pure; for terminal and window."""

from __future__ import annotations

from msgspec.structs import replace

from app.device_names import names_of
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Stopped
from core.vocabulary.plan import Moment, Role, RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State
from core.vocabulary.text import plain

MOST_ACCEPTED = 200
"""Of code whose differences are accepted, the newest are remembered."""

_FIX = "Pair it again (tandem pair), or say who is to take part now: --with NAME,…, or --solo."


def may_go_on(entry: RunEntry) -> bool:
    """Whether it ended before its time and was started here: then all it needs is a checkpoint."""
    return bool(entry.source) and isinstance(entry.phase, Stopped | Failed)


def where_on(run: RunId, ours: Moment | None, state: State) -> tuple[Moment | None, str]:
    """The newest checkpoint of a run that is known of, and on which other laptop it lies; ``""``: here."""
    other = state.checkpoints.get(run)
    if other is None or (ours is not None and other.moment.order <= ours.order):
        return ours, ""
    return other.moment, names_of(state, [other.device])[other.device]


def spec_of(entry: RunEntry, state: State, *, others_said: bool = False, fix: str = _FIX) -> RunSpec:
    """With exactly the laptops that took part. Raises ``TandemError`` for a run that can't be repeated here.

    ``others_said``: the caller says who takes part now, so nobody of that run is missed. ``fix``: what to do
    about one who is not paired any more.
    """
    if not entry.source:
        raise TandemError(
            code="run-of-another",
            what=f"The run {entry.run} was started on another laptop, and its script lies there.",
            fix="Run it again there, or name a script of this laptop.",
        )
    if entry.spec is None:  # kept by an earlier Tandem
        return RunSpec(script=entry.source, arguments=entry.arguments)
    me = state.me.device if state.me is not None else None
    then = dict(zip(entry.device_ids, entry.devices, strict=False))
    others = {device: name for device, name in then.items() if device != me}
    for device, name in others.items():
        known = state.devices.get(device)
        if not others_said and (known is None or not known.paired):
            raise TandemError(
                code="not-paired",
                what=f"{plain(name, 40)} took part then and is not paired with this laptop now.",
                fix=fix,
            )
    return replace(entry.spec, script=entry.source, devices=tuple(others), solo=not others)


def alone(spec: RunSpec, me: DeviceId | None) -> RunSpec:
    """As asked for, on this laptop alone: what was said of the others goes with them, and so do shares."""
    own = {device: roles for device, roles in spec.roles.items() if device == me and Role.CHIEF in roles}
    return replace(spec, solo=True, devices=(), roles=own, shares={}, shares_total=None)


def withdrawing(code: str, state: State) -> ChangeSettings:
    """By what runs of this code differ is no longer accepted."""
    known = state.me.settings.accepted if state.me is not None else ()
    return ChangeSettings(change=SettingsChange(accepted=tuple(each for each in known if each != code)))


def accepting(code: str, state: State) -> ChangeSettings:
    """By what runs of this code (``Plan.code``) differ from one machine's is accepted from now on."""
    known = state.me.settings.accepted if state.me is not None else ()
    kept = [each for each in known if each != code][-MOST_ACCEPTED + 1 :]
    return ChangeSettings(change=SettingsChange(accepted=(*kept, code)))
