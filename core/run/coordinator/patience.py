"""Whom a run waits for is told, a silent laptop is waited for, and it goes on where it was. Pure.

Only where what joins the trainers outlasts silence (``Plan.patient``): else that is the end. Sealed trainers
tell nothing of their meetings, and a cut between them is the end (not ``Plan.redials``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

from core.run import problems
from core.run.coordinator import state as co
from core.run.coordinator import verdicts
from core.run.coordinator.ending import (
    Turn,
    abandon,
    emit,
    fail,
    know,
    look_for_end,
    outputs_lost,
    say,
    send,
)
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Starting
from core.vocabulary.plausible import sound_stand
from core.vocabulary.waits import Cause, Stand, WaitsFor

_LIVELY_S = 30.0
"""A laptop whose link is lost may train on: while steps end, nobody is given up."""
_CUT_TOLD_S = 150.0
"""That a connection was cut while a laptop was away shows when the system next sends something over it, up to
120 s after the laptop is there again (Linux's ``TCP_RTO_MAX``)."""
_STUCK: frozenset[Cause] = frozenset({"stopped", "silent", "connection"})
"""Whom the run waits for on these grounds comes to no step's end at which all could stop."""


_WATCHED = co.Assembling | co.Running | co.Halting | co.Releasing | co.Draining
"""Stages in which a run may wait for somebody."""

# --- what is heard ---------------------------------------------------------------------------------------


def hear_stand(turn: Turn, device: DeviceId, task: str, stand: Stand | None) -> None:
    state = turn.state
    own = {each.name for each in state.plan.tasks_of(device)}
    if (
        not state.plan.patient
        or isinstance(state.stage, co.Assembling)
        or task not in own
        or (stand is not None and not sound_stand(stand, state.plan))
    ):
        return
    stands = {name: heard for name, heard in state.stands.items() if name != task}
    if stand is not None:
        if task not in state.stands and not (stand.stopped or stand.held):
            note_progress(turn, turn.now_s - stand.lasted_s)  # its last meeting, of which nobody need tell
        stands[task] = co.Heard(stand, turn.now_s)
    elif task in state.stands:
        note_progress(turn)
    turn.state = replace(turn.state, stands=MappingProxyType(stands))
    come = verdicts.bytes_come(turn.state)
    if come > turn.state.vigil.come:
        note_progress(turn)
    turn.state = replace(turn.state, vigil=replace(turn.state.vigil, come=come))
    look(turn)


def note_progress(turn: Turn, at_s: float | None = None) -> None:
    """Something came forward, now or at ``at_s``."""
    vigil = turn.state.vigil
    progressed_s = turn.now_s if at_s is None else max(vigil.progressed_s, at_s)
    turn.state = replace(turn.state, vigil=replace(vigil, progressed_s=progressed_s))


# --- what is told ----------------------------------------------------------------------------------------


def look(turn: Turn) -> None:
    """Make the verdict anew, tell it where it is news, and look again while there is one."""
    state = turn.state
    if not state.plan.patient:
        return
    waits = verdicts.verdicts(state, turn.now_s) if isinstance(state.stage, _WATCHED) else ()
    if waits and not state.vigil.told and not state.plan.redials:
        note_progress(turn)  # nobody tells of steps there: it went on until now
        state = turn.state
    vigil, after_s = state.vigil, state.plan.ask_after_s
    asks = bool(waits) and 0 < after_s <= turn.now_s - vigil.progressed_s
    is_news = _gist(waits) != _gist(vigil.told) or asks != vigil.asks
    is_due = bool(waits) and turn.now_s - vigil.told_s >= limits.WAITS_TOLD_S
    if is_news or is_due:
        turn.state = replace(state, vigil=replace(vigil, told=waits, told_s=turn.now_s, asks=asks))
        emit(turn, ev.WaitingChanged(run=state.plan.run, waits=waits, asks=asks))
    if not waits and not state.is_any_away:
        turn.no_longer("look")
    elif "look" not in turn.state.waits:
        turn.wait("look", limits.LOOK_S)


def wait_on(turn: Turn) -> None:
    """The user lets it go on waiting."""
    if turn.state.vigil.asks:
        note_progress(turn)
        look(turn)


def _gist(waits: tuple[WaitsFor, ...]) -> list[tuple[object, ...]]:
    return [(wait.device, wait.cause, wait.activity, wait.where) for wait in waits]


# --- who is away -----------------------------------------------------------------------------------------


def may_wait_for(turn: Turn, device: DeviceId, problem: Problem) -> bool:
    """Whether the run goes on although the member's link is lost for this reason."""
    state = turn.state
    if not state.plan.patient or problem.code not in problems.SILENCES:
        return False
    match state.stage:
        case co.Assembling():
            return True
        case co.Running():
            return state.plan.redials or not isinstance(state.phase, Starting)
        case co.Halting() | co.Draining():
            return device == state.plan.chief.device and state.lacks_outputs
    return False


def miss(turn: Turn, device: DeviceId, problem: Problem) -> None:
    """Nothing comes from it any more, and it is waited for. ``problem``: how its link was lost."""
    part = turn.state.parts[device]
    if part.away_s is None:
        know(turn, device, replace(part, linked=False, away_s=turn.now_s, away_why=problem))
    if device == turn.state.plan.chief.device and turn.state.outputs == "coming":
        turn.state = replace(turn.state, outputs="cut")
    if "away" not in turn.state.waits:
        turn.wait("away", turn.state.plan.away_s)
    # Its own limits on the others' meeting know more than "start".
    turn.no_longer("start", "outputs", "finish")
    mind_preparing(turn)
    look(turn)


def mind_preparing(turn: Turn) -> None:
    """Users' answers and files on their way have their limits, which stand still while somebody is away."""
    state, parts = turn.state, turn.state.parts.values()
    if not isinstance(state.stage, co.Assembling):
        return
    if state.is_any_away or all(part.joined for part in parts):
        turn.no_longer("consent")
    elif "consent" not in state.waits:
        turn.wait("consent", limits.CONSENT_S)
    if state.is_any_away or all(part.prepared is not None for part in parts if part.joined):
        turn.no_longer("receive")
    elif "receive" not in state.waits:
        turn.wait("receive", limits.RECEIVE_S)


def welcome(turn: Turn, device: DeviceId) -> None:
    """It is linked again: what may have been lost is asked for, and will be asked for."""
    state = turn.state
    part = state.parts[device]
    if part.away_s is None:
        return
    preparing = isinstance(state.stage, co.Assembling)
    know(turn, device, replace(part, linked=True, away_s=None, resuming=True, may_ask_again=preparing))
    # What its trainers do since then was not heard; what lasts is told again.
    own = {task.name for task in state.plan.tasks_of(device)}
    stands = {name: heard for name, heard in state.stands.items() if name not in own}
    turn.state = replace(turn.state, stands=MappingProxyType(stands))
    if not part.joined:
        send(turn, device, request(state))  # it may not have come; who has it leaves this one aside
    send(turn, device, ms.Resumed(run=state.plan.run, heard=part.heard, from_starter=True))
    if turn.now_s - part.away_s >= limits.MISSED_S:
        know(turn, device, replace(turn.state.parts[device], back_s=turn.now_s))
        say(turn, problems.back(state.name(device), turn.now_s - part.away_s))
    if not turn.state.is_any_away:
        turn.no_longer("away")
    mind_preparing(turn)
    if isinstance(state.stage, co.Draining):
        turn.wait("outputs", limits.OUTPUTS_S)
    look_for_end(turn)
    look(turn)


def request(state: co.Coordination) -> ms.Prepare:
    """To take part, as another laptop hears it."""
    return ms.Prepare(
        plan=state.plan,
        manifest=state.manifest,
        checkpoint=state.checkpoint,
        texts=dict(state.texts),
    )


def repeat(turn: Turn, device: DeviceId, heard: int) -> None:
    """What a member missed while it had no link."""
    part = turn.state.parts[device]
    know(turn, device, replace(part, resuming=False))
    if not part.joined:
        return  # it sees nothing of the run before its user allowed it
    for event, number in turn.state.replay.since(heard):
        send(turn, device, ms.Mirrored(event=event, number=number))


def turn_away(turn: Turn, device: DeviceId) -> None:
    """It comes back to a run that is ending: it hears of that, and how."""
    state = turn.state
    know(turn, device, replace(state.parts[device], linked=True))
    over = problems.over_meanwhile(problems.starter_of(state.plan))
    send(turn, device, ms.RunAbandoned(run=state.plan.run, problem=over))


def cut_off(turn: Turn) -> Problem | None:
    """What a trainer's end comes of, where somebody is away whose connections are not dialled anew."""
    state = turn.state
    if state.plan.redials:
        return None
    lost = ((device, part.away_why) for device, part in state.parts.items() if part.away_s is not None)
    return next((problems.lost_device(state.plan, device, why) for device, why in lost if why), None)


def cut_before(turn: Turn) -> Problem | None:
    """What a trainer may have lost its connections by: a laptop that was away, and is there again since a
    moment ago. None where connections are dialled anew."""
    state = turn.state
    back = [(part.back_s, device) for device, part in state.parts.items() if part.back_s is not None]
    back_s, device = max(back, default=(-math.inf, state.me))
    why = state.parts[device].away_why
    if state.plan.redials or why is None or turn.now_s - back_s > _CUT_TOLD_S:
        return None
    return problems.lost_device(state.plan, device, why, back=True)


def on_away_over(turn: Turn) -> None:
    """Somebody has been away for as long as the run waits, unless steps end all the same."""
    state = turn.state
    away = {device: part.away_s for device, part in state.parts.items() if part.away_s is not None}
    if not away:
        return
    first = min(away, key=lambda device: away[device])
    left_s = away[first] + state.plan.away_s - turn.now_s
    lively_s = state.vigil.progressed_s + _LIVELY_S - turn.now_s
    if left_s > 0 or lively_s > 0:
        turn.wait("away", max(left_s, lively_s, 1.0))
        return
    # Of a loop of the script's own no checkpoints are kept.
    began = not isinstance(state.stage, co.Assembling) and state.plan.strategy == "managed"
    verdict = problems.away_too_long(state.name(first), state.plan.away_s, began=began)
    if isinstance(state.stage, co.Draining):
        outputs_lost(turn, verdict)
    else:
        fail(turn, verdict)


def stop_without(turn: Turn, by: str) -> bool:
    """Where somebody is away no step ends any more at which members could stop: everything ends at once."""
    if not turn.state.is_any_away:
        return False
    abandon(turn, problems.stopped_by(by), by=by)
    return True


def least_force(turn: Turn) -> int:
    """With which Stop begins: there is no waiting for the end of a step that does not end."""
    return 1 if any(wait.cause in _STUCK or wait.held for wait in turn.state.vigil.told) else 0
