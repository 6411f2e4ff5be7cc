"""One step of a member's machine under way: what it says, waits for, and how its part ends. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.run import problems
from core.run.draft import Send
from core.run.participant.state import Effect, Gone, Participation, Show, Stage, StopTrainers
from core.runtime.timers import CancelTimer, SetTimer
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Failed, MemberPhase
from core.vocabulary.progress import LogLines
from core.vocabulary.state import apply

_ORDER: tuple[MemberPhase, ...] = ("starting", "meeting", "training", "stopping")


class PartTurn:
    """``now`` is what is known so far, ``effects`` what is asked for so far."""

    def __init__(self, known: Participation, now_s: float) -> None:
        self.now = known
        self.now_s = now_s
        self.effects: list[Effect] = []

    def leave(self, verdict: Problem) -> None:
        """End this part now, whatever it does."""
        if self.now.stage == "consent":
            self.settle(False)
        for wait in tuple(self.now.waits - {"farewell"}):
            self.no_longer(wait)
        if self.now.doing and not self.now.abandoned:
            self.effects.append(StopTrainers(2))
        self.now = replace(self.now, abandoned=True, verdict=self.now.verdict or verdict)
        self.to("leaving")
        if self.now.joined and not self.now.concluded and "farewell" not in self.now.waits:
            self.wait("farewell", limits.FAREWELL_S)

    def leave_if_over(self) -> None:
        """Gone once no trainer runs and the run's end has been shown."""
        now = self.now
        if now.stage != "leaving" or now.doing:
            return
        if now.joined and not now.concluded:
            if not now.starter_lost:
                return
            self.show_own_end(now.verdict or problems.starter_silent(now.starter_name))
        for wait in tuple(now.waits):
            self.no_longer(wait)
        self.now = replace(self.now, stage="gone")
        self.effects.append(Gone(self.now.outputs_taken))

    def show_own_end(self, verdict: Problem) -> None:
        """The starter cannot say it any more."""
        event = ev.RunPhaseChanged(run=self.now.plan.run, phase=Failed(problem=verdict))
        if self.now.shown.run is not None and not self.now.shown.run.over:
            self.effects.append(Show(event))
        self.now = replace(self.now, concluded=True)

    def decline(self, problem: Problem) -> None:
        self.send(ms.Declined(run=self.now.plan.run, problem=problem))
        self.leave(problem)

    def settle(self, allowed: bool) -> None:
        self.no_longer("consent")
        self.effects.append(Show(ev.ConsentSettled(run=self.now.plan.run, allowed=allowed)))

    def conclude(self) -> None:
        self.now = replace(self.now, concluded=True)
        self.leave(problems.starter_silent(self.now.starter_name))

    def to(self, stage: Stage, *effects: Effect) -> None:
        self.now = replace(self.now, stage=stage)
        self.effects += effects

    def send(self, message: Message) -> None:
        """To the starter."""
        self.effects.append(Send(self.now.plan.starter, message))

    def report(self, event: RunEvent) -> None:
        """To the starter, whose mirror shows it here too; without it, straight to this screen."""
        if not self.now.starter_lost:
            self.send(ms.Reported(event=event))
            return
        try:
            self.now = replace(self.now, shown=apply(self.now.shown, event))
        except IllegalTransition:
            return
        self.effects.append(Show(event))

    def say_doing(self) -> None:
        """The least of what this device's trainers do."""
        if self.now.doing:
            self.say_phase(min(self.now.doing.values(), key=_ORDER.index))

    def say_phase(self, phase: MemberPhase, *, done: int = 0, total: int = 0) -> None:
        said = (phase, self.now.strategy)
        if said == self.now.said_phase and not total:
            return
        self.now = replace(self.now, said_phase=said)
        self.report(
            ev.MemberPhaseChanged(
                run=self.now.plan.run,
                device=self.now.me,
                phase=phase,
                done=done,
                total=total,
                strategy=self.now.strategy,
            )
        )

    def say(self, task: str, words: str) -> None:
        lines = LogLines(task=task, stream="tandem", text=words)
        self.report(ev.MemberLogged(run=self.now.plan.run, device=self.now.me, lines=lines))

    def wait(self, wait: Wait, seconds: float) -> None:
        self.now = replace(self.now, waits=self.now.waits | {wait})
        self.effects.append(SetTimer(wait, seconds))

    def no_longer(self, wait: Wait) -> None:
        if wait in self.now.waits:
            self.now = replace(self.now, waits=self.now.waits - {wait})
            self.effects.append(CancelTimer(wait))
