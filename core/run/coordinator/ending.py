"""How a run ends: finished, stopped or failed; and what every step tells the members. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from core.run import problems
from core.run.coordinator import state as co
from core.run.draft import Draft
from core.speed.summary import counted, summary
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Failed, Finished, Phase, Starting, Stopped, Stopping, Training, ended
from core.vocabulary.plausible import sound_summary
from core.vocabulary.progress import LogLines

Turn = Draft[co.Coordination, co.OwnEffect]
"""One step of the coordinator under way."""

# --- what is sent and shown ---------------------------------------------------------------------------------


def send(turn: Turn, device: DeviceId, message: Message) -> None:
    if turn.state.parts[device].linked:
        turn.send(device, message)


def emit(turn: Turn, event: RunEvent) -> None:
    """For this screen, and mirrored to every other member that has joined."""
    turn.state = replace(turn.state, tally=counted(turn.state.tally, event, turn.now_s))
    turn.emit(event)
    number = 0
    if turn.state.plan.patient:
        replay, number = turn.state.replay.after(event)
        turn.state = replace(turn.state, replay=replay)
    for device, part in turn.state.parts.items():
        if part.joined and device != turn.state.me and not (part.resuming and number):
            send(turn, device, ms.Mirrored(event=event, number=number))


def show(turn: Turn, phase: Phase) -> None:
    """A new phase. This laptop's own part hears only of the last one: its screen has the others."""
    turn.state = replace(turn.state, phase=phase)
    event = ev.RunPhaseChanged(run=turn.state.plan.run, phase=phase)
    emit(turn, event)
    if ended(phase) and turn.state.me in turn.state.parts:
        send(turn, turn.state.me, ms.Mirrored(event=event))


def say(turn: Turn, text: str) -> None:
    chief = turn.state.plan.chief
    lines = LogLines(task=chief.name, stream="tandem", text=text + "\n")
    emit(turn, ev.MemberLogged(run=turn.state.plan.run, device=chief.device, lines=lines))


def know(turn: Turn, device: DeviceId, part: co.Part) -> None:
    turn.state = replace(turn.state, parts=MappingProxyType({**turn.state.parts, device: part}))


def enter(turn: Turn, stage: co.Stage) -> None:
    turn.state = replace(turn.state, stage=stage)


def on_met(turn: Turn) -> None:
    """Some member's trainers have met the others, or have ended."""
    if all(part.phase in ("training", "ended") for part in turn.state.parts.values()):
        turn.no_longer("start")
        if turn.state.plan.strategy == "own":
            # A loop of its own need not report steps: the script runs, that is all one can know.
            on_first_step(turn)


def on_first_step(turn: Turn) -> None:
    if isinstance(turn.state.phase, Starting) and not isinstance(turn.state.stage, co.Ending):
        turn.no_longer("start")
        show(turn, Training())


# --- the end is near ---------------------------------------------------------------------------------------


def look_for_end(turn: Turn) -> None:
    """Whether the run's end is reached, or what has to happen before."""
    state = turn.state
    match state.stage:
        case co.Ending() if state.all_ended():
            conclude(turn)
        case co.Failing(cause) if state.all_ended():
            abandon(turn, cause, cause=cause, weak=True)
        case co.Keeping(cause) if not state.may_keep:
            abandon(turn, cause, cause=cause)
        case co.Draining() if state.outputs == "here":
            conclude(turn)
        case co.Running() | co.Releasing() | co.Halting() if state.all_ended():
            drain(turn)
        case co.Halting(force=0, by=by) if state.enders_gone():
            stop(turn, by, 1)  # a ps or evaluator has no step's end to stop at
        case co.Running() if state.exits:
            on_met(turn)
            if state.served():
                release(turn, 1)
            elif "finish" not in state.waits and not (state.plan.redials or state.is_any_away):
                turn.wait("finish", limits.FINISH_S)
        case co.Releasing():
            on_met(turn)


def drain(turn: Turn) -> None:
    turn.no_longer("start", "finish", "stop")
    if turn.state.outputs == "here":
        conclude(turn)
        return
    stage = turn.state.stage
    enter(turn, co.Draining(stage if isinstance(stage, co.Halting) else None))
    if turn.state.parts[turn.state.plan.chief.device].away_s is None:  # else "away" is its limit
        turn.wait("outputs", limits.OUTPUTS_S)


def release(turn: Turn, force: int) -> None:
    """What serves the others (ps, evaluator) never ends by itself."""
    enter(turn, co.Releasing(force))
    turn.wait("finish", limits.STOP_S[force])
    ask_to_stop(turn, force)


def ask_to_stop(turn: Turn, force: int) -> None:
    for device in turn.state.unfinished():
        send(turn, device, ms.StopAsked(run=turn.state.plan.run, force=force))


# --- stopped -----------------------------------------------------------------------------------------------


def stop(turn: Turn, by: str, force: int) -> None:
    force = min(force, 2)
    if force < turn.state.next_force:
        return
    match turn.state.stage:
        case co.Assembling() | co.Draining():
            abandon(turn, problems.stopped_by(by), by=by)
        case co.Failing(cause) | co.Keeping(cause):
            abandon(turn, cause, cause=cause, weak=True, by=by)
        case co.Running() | co.Releasing() | co.Halting():
            if isinstance(turn.state.phase, Starting):
                force = max(force, limits.STOP_WHILE_STARTING)
            first = turn.state.stopped_by
            enter(turn, co.Halting(force, by if first is None else first))
            turn.no_longer("start", "finish")
            if not isinstance(turn.state.phase, Stopping):
                show(turn, Stopping())
            turn.wait("stop", limits.STOP_S[force])
            ask_to_stop(turn, force)


def on_stop_too_slow(turn: Turn, halting: co.Halting) -> None:
    if halting.force >= 2:
        abandon(turn, problems.stopped_by(halting.by))
        return
    names = [turn.state.name(device) for device in turn.state.unfinished()]
    say(turn, problems.slow_to_stop(names, limits.STOP_S[halting.force], halting.force + 1))
    stop(turn, halting.by, halting.force + 1)


def close(turn: Turn, by: str, why: Problem | None = None) -> None:
    """The user of a laptop leaves the run. ``why``: None where Tandem is being closed there."""
    why = why or problems.closed(by)
    match turn.state.stage:
        case co.Ending() as ending:
            enter(turn, replace(ending, by=by if ending.by is None else ending.by))
        case co.Failing(cause) | co.Keeping(cause):
            abandon(turn, why, cause=cause, weak=True, by=by)
        case _:
            abandon(turn, why, by=by)


# --- failed ------------------------------------------------------------------------------------------------


def fail(turn: Turn, problem: Problem, *, weak: bool = False) -> None:
    """Note a cause. A better one may follow a weak one for a moment; then everything ends."""
    match turn.state.stage:
        case co.Ending(cause=cause, weak=replaceable) as ending:
            if cause is None or (replaceable and not weak):
                enter(turn, replace(ending, cause=problem, weak=weak))
        case co.Keeping():
            look_for_end(turn)
        case co.Failing() if weak:
            pass
        case _ if weak:
            enter(turn, co.Failing(problem))
            turn.no_longer("start", "finish")
            turn.wait("cause", limits.CAUSE_S)
        case _:
            abandon(turn, problem, cause=problem)


def fail_with_script(turn: Turn, problem: Problem, device: DeviceId) -> None:
    """The script on ``device`` failed: what was trained until then is kept, before everything ends."""
    chief = turn.state.plan.chief
    if not isinstance(turn.state.stage, co.Running) or device == chief.device or not turn.state.may_keep:
        fail(turn, problem)
        return
    enter(turn, co.Keeping(problem))
    turn.no_longer("start", "finish")
    turn.wait("cause", limits.STOP_S[0])  # it may be in a long step or callback
    say(turn, f"{problem.what} {turn.state.name(chief.device)} keeps the weights before the run ends.")
    send(turn, chief.device, ms.StopAsked(run=turn.state.plan.run, force=0))


def outputs_lost(turn: Turn, why: Problem | None = None) -> None:
    problem = problems.outputs_missing(turn.state.name(turn.state.plan.chief.device), why)
    if turn.state.stopped_by is None:
        fail(turn, problem)
        return
    say(turn, str(problem))
    if not isinstance(turn.state.stage, co.Ending):
        abandon(turn, problem)


# --- over --------------------------------------------------------------------------------------------------


def abandon(
    turn: Turn, problem: Problem, *, cause: Problem | None = None, weak: bool = False, by: str | None = None
) -> None:
    """End every member's part now, which is told ``problem``; the rest as in ``Ending``."""
    launched = not isinstance(turn.state.stage, co.Assembling)
    first = turn.state.stopped_by
    enter(turn, co.Ending(cause, weak, by if first is None else first))
    turn.no_longer(*turn.state.waits)
    for device, part in turn.state.parts.items():
        know(turn, device, replace(part, away_s=None))  # it hears of it when it comes back
    for device in turn.state.parts:
        send(turn, device, ms.RunAbandoned(run=turn.state.plan.run, problem=problem))
    if launched and not turn.state.all_ended():
        turn.wait("end", limits.END_S)
    else:
        conclude(turn)


def conclude(turn: Turn) -> None:
    state = turn.state
    turn.no_longer(*state.waits)
    phase: Phase
    match state.stage:
        case co.Ending(cause=Problem() as cause):
            phase = Failed(problem=cause)
        case _ if state.stopped_by is not None:
            phase = Stopped(by=state.stopped_by)
        case _ if weights_differ(turn):
            phase = Failed(problem=problems.unequal_weights())
        case _:
            phase = Finished()
            say_what_was_not_shared(turn)
    enter(turn, co.Over())
    out = summary(turn.state.tally, turn.now_s)
    out = structs.replace(out, started_s=state.unix_s + state.tally.pressed_s)
    if not sound_summary(out, state.plan):
        # Odd numbers of a member must not cost the rest of the summary.
        out = structs.replace(out, expectation=None, settled=None)
    emit(turn, ev.RunSummarised(run=state.plan.run, summary=out))
    show(turn, phase)
    turn.effects.append(co.Finish())


def say_what_was_not_shared(turn: Turn) -> None:
    exits = turn.state.exits
    if turn.state.plan.solo:
        return
    if not any(end.shared for end in exits):
        say(turn, problems.nothing_shared())


def weights_differ(turn: Turn) -> bool:
    """Whether members that keep their weights equal ended with different ones."""
    plan = turn.state.plan
    weights = {end.weights_sha256 for end in turn.state.exits if end.weights_sha256}
    return plan.strategy == "managed" and not plan.solo and len(weights) > 1
