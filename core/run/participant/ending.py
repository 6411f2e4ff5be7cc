"""Members leave: others, while this part goes on, or this one, whose part ends. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.run import problems
from core.run.participant import state as pa
from core.run.turn import ParticipantTurn
from core.vocabulary import events as ev
from core.vocabulary import limits, trainer_messages
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Failed, Stopped, Training


def go_on_without(turn: ParticipantTurn, told: ms.GoOnWithout) -> None:
    before = turn.state
    turn.state = state = replace(before, gone=told.gone)
    if state.me in told.gone:
        if state.doing:
            turn.effects.append(pa.StopTrainers(2))  # the others go on without them
        return
    if state.doing:
        _meet_without(turn, told.generation)
    leads_now = state.chief != before.chief and state.chief.device == state.me
    if leads_now and state.chief.name not in state.doing:
        turn.effects.append(pa.FindOutputs())  # its script had ended before it led


def leave_run(turn: ParticipantTurn, why: Problem) -> None:
    """End the trainers here after their step, or at once if the step cannot end: it waits for somebody."""
    turn.state = state = replace(turn.state, leaves=why)
    run = state.shown.run
    if state.stopped or state.away_s is not None or (run is not None and run.waiting is not None):
        turn.effects.append(pa.StopTrainers(2))
    else:
        turn.effects.append(pa.OrderTrainers(trainer_messages.Stop(leaves=True)))
        turn.wait("leave", limits.LEAVE_S)


# --- the end -----------------------------------------------------------------------------------------------


def decline(turn: ParticipantTurn, problem: Problem) -> None:
    turn.state = replace(turn.state, refusal=problem)
    turn.tell_starter(ms.Declined(run=turn.state.plan.run, problem=problem))
    leave(turn, problem)


def conclude(turn: ParticipantTurn) -> None:
    """The run's last phase was reported."""
    leave(turn, problems.starter_silent(turn.state.starter_name), concluded=True)


def may_go_on_alone(state: pa.Participation) -> bool:
    """Whether the training goes on here, and on the other members, without its starter."""
    run = state.shown.run
    return (
        isinstance(state.stage, pa.TrainersRunning)
        and state.plan.outlasts_losses
        and (run is not None and isinstance(run.phase, Training))
        and set(state.doing.values()) == {"training"}
        and (state.leaves is None and state.me not in state.gone)
    )


def lose_starter(turn: ParticipantTurn, problem: Problem) -> None:
    plan = turn.state.plan
    if any(member.device == plan.starter for member in plan.members):
        turn.show(
            ev.MemberPhaseChanged(run=plan.run, device=plan.starter, phase="ended", words=problems.LINK_LOST),
        )
    verdict = problems.lost_starter(turn.state.starter_name, problem)
    if may_go_on_alone(turn.state):
        _stop_to_go_on(turn, verdict)
    else:
        leave(turn, verdict, starter_lost=True)


def _stop_to_go_on(turn: ParticipantTurn, verdict: Problem) -> None:
    """The members that are left stop at the same step, each with a checkpoint. All of them lose the starter,
    though not at the same moment."""
    plan, known = turn.state.plan, {*turn.state.gone} - {turn.state.plan.starter}
    turn.state = replace(turn.state, gone=(*known, plan.starter))
    turn.cancel(*turn.state.waits)
    # Above every generation that the starter made. Members that heard of different losses from it do not meet
    # in one generation, where they would add up different parts; they stop without this step.
    _meet_without(turn, plan.generation + len(plan.members) + 1 + len(known))
    turn.effects.append(pa.StopTrainers(0))
    turn.enter(pa.Leaving(verdict, starter_lost=True, goes_on=True))
    turn.wait("leave", limits.LEAVE_S)


def _meet_without(turn: ParticipantTurn, generation: int) -> None:
    state = turn.state
    ranks = tuple(rank for rank, task in enumerate(state.plan.tasks) if task.device in state.gone)
    order = trainer_messages.MeetWithout(generation=generation, gone=ranks)
    turn.effects.append(pa.OrderTrainers(order))


def leave(
    turn: ParticipantTurn,
    verdict: Problem,
    *,
    starter_lost: bool = False,
    concluded: bool = False,
    by: str = "",
) -> None:
    """End this part now, whatever it is doing."""
    state = turn.state
    if isinstance(state.stage, pa.Asking):
        turn.settle(False)
    turn.cancel(*(turn.state.waits - {"farewell", "leave"}))
    if not state.joined or isinstance(state.stage, pa.Scanning):
        go(turn)  # the starter has heard no yes: it reports no last phase
        return
    before = state.stage
    if isinstance(before, pa.Leaving):
        after = replace(
            before,
            starter_lost=before.starter_lost or starter_lost,
            concluded=before.concluded or concluded,
            by=before.by or by,
        )
    else:
        after = pa.Leaving(verdict, starter_lost, concluded, by)
        if state.doing:
            turn.effects.append(pa.StopTrainers(2))
    turn.enter(after)
    if not after.concluded and "farewell" not in turn.state.waits:
        turn.wait("farewell", limits.FAREWELL_S)


def will_go_on(state: pa.Participation) -> bool:
    """Whether this part has ended only to go on without its starter, and has a checkpoint for that."""
    going = isinstance(state.stage, pa.Leaving) and state.stage.goes_on and not state.stage.concluded
    return going and (state.has_checkpoint or state.plan.resume is not None)


def go_if_over(turn: ParticipantTurn) -> None:
    """Finish once no trainer runs and the run's end has been shown."""
    state = turn.state
    if not state.doing:
        turn.cancel("leave")
    if not isinstance(state.stage, pa.Leaving) or state.doing:
        return
    if not state.stage.concluded:
        if not state.stage.starter_lost:
            return
        # The starter cannot report it any more.
        if state.shown.run is not None and not state.shown.run.over:
            by, verdict = state.stage.by, state.stage.verdict
            phase = Stopped(by=by) if by else Failed(problem=verdict)
            if will_go_on(state):
                phase = Stopped(by=state.plan.member(state.me).name, goes_on=True)
            turn.emit(ev.RunPhaseChanged(run=state.plan.run, phase=phase))
    go(turn)


def go(turn: ParticipantTurn) -> None:
    turn.cancel(*turn.state.waits)
    turn.effects.append(pa.Leave(turn.state.outputs_taken, turn.state.joined))
    turn.enter(pa.Gone(will_go_on(turn.state)))
