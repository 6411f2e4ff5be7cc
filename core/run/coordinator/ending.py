"""How a run comes to its end: met, served, finished, stopped, failed, abandoned, concluded. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from core.run import problems
from core.run.coordinator.state import Coordination, Effect, Emit, Over, Part
from core.run.draft import Send
from core.runtime.timers import CancelTimer, SetTimer
from core.speed.summary import counted, summary
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Exit, Failed, Finished, Phase, Starting, Stopped, Stopping, Training, ended
from core.vocabulary.plan import Task
from core.vocabulary.plausible import sound_summary
from core.vocabulary.progress import LogLines
from core.vocabulary.roles import Role


class Turn:
    """``now`` is what is known so far, ``effects`` what is asked for so far."""

    def __init__(self, known: Coordination, now_s: float) -> None:
        self.now = known
        self.now_s = now_s
        self.effects: list[Effect] = []

    def part(self, device: DeviceId) -> Part:
        return self.now.parts[device]

    def name(self, device: DeviceId) -> str:
        return self.now.plan.member(device).name

    def unfinished(self) -> list[DeviceId]:
        """Linked members with a trainer that has not ended."""
        found = []
        for device, part in self.now.parts.items():
            names = {task.name for task in self.now.plan.tasks_of(device)}
            if part.linked and not names <= set(part.exits):
                found.append(device)
        return found

    def know(self, device: DeviceId, part: Part) -> None:
        self.now = replace(self.now, parts=MappingProxyType({**self.now.parts, device: part}))

    def send(self, device: DeviceId, message: Message) -> None:
        if self.part(device).linked:
            self.effects.append(Send(device, message))

    def emit(self, event: RunEvent) -> None:
        """For this screen, and mirrored to every member that has joined."""
        self.now = replace(self.now, tally=counted(self.now.tally, event, self.now_s))
        self.effects.append(Emit(event))
        for device, part in self.now.parts.items():
            if part.joined and device != self.now.me:
                self.send(device, ms.Mirrored(event=event))

    def enter(self, phase: Phase) -> None:
        self.now = replace(self.now, phase=phase)
        event = ev.RunPhaseChanged(run=self.now.plan.run, phase=phase)
        self.emit(event)
        if ended(phase) and self.now.me in self.now.parts:
            self.send(self.now.me, ms.Mirrored(event=event))

    def say(self, text: str) -> None:
        chief = self.now.plan.chief
        lines = LogLines(task=chief.name, stream="tandem", text=text + "\n")
        self.emit(ev.MemberLogged(run=self.now.plan.run, device=chief.device, lines=lines))

    def wait(self, wait: Wait, seconds: float) -> None:
        self.now = replace(self.now, waits=self.now.waits | {wait})
        self.effects.append(SetTimer(wait, seconds))

    def no_longer(self, wait: Wait) -> None:
        if wait in self.now.waits:
            self.now = replace(self.now, waits=self.now.waits - {wait})
            self.effects.append(CancelTimer(wait))


class Conclusion(Turn):
    """The part of a step that asks whether the end is reached, and brings it about."""

    def own_enders(self) -> tuple[Task, ...]:
        """The tasks that end by themselves; the others serve them until they are stopped."""
        tasks = self.now.plan.tasks
        if any(task.role is Role.PS for task in tasks):
            return tasks[:1]
        return tuple(task for task in tasks if task.role is not Role.EVALUATOR)

    def served(self) -> bool:
        ends = [self.part(task.device).exits.get(task.name) for task in self.own_enders()]
        return all(end is not None and end.reason == "finished" for end in ends)

    def enders_gone(self) -> bool:
        return all(task.name in self.part(task.device).exits for task in self.own_enders())

    def all_ended(self) -> bool:
        return all(
            task.name in part.exits for task in self.now.plan.tasks if (part := self.part(task.device)).linked
        )

    def exits(self) -> list[Exit]:
        return [end for part in self.now.parts.values() for end in part.exits.values()]

    def end_servants(self, force: int) -> None:
        """What serves the others (ps, evaluator) never ends by itself."""
        self.now = replace(self.now, servants=force)
        self.wait("finish", limits.STOP_S[force])
        for device in self.unfinished():
            self.send(device, ms.StopAsked(run=self.now.plan.run, force=force))

    def go_on(self) -> None:
        """Look whether the run's end is reached, or what has to happen before."""
        if not self.now.launched or ended(self.now.phase):
            return
        if self.now.abandoned:
            if self.all_ended():
                self.conclude()
        elif self.now.cause is not None:
            if self.all_ended() or not self.now.cause_is_weak:
                self.abandon(self.now.cause)
        elif self.all_ended():
            for wait in ("start", "finish", "stop"):
                self.no_longer(wait)
            if self.now.outputs == "here":
                self.conclude()
            elif "outputs" not in self.now.waits:
                self.wait("outputs", limits.OUTPUTS_S)
        elif self.now.stop == 0 and self.enders_gone():
            self.stop(self.now.stopped_by, 1)  # a ps or evaluator has no step's end to stop at
        elif self.now.stop < 0 and self.exits():
            self.on_met()
            if self.served():
                if self.now.servants < 0:
                    self.end_servants(1)
            elif "finish" not in self.now.waits:
                self.wait("finish", limits.FINISH_S)

    def stop(self, by: str, force: int) -> None:
        force = min(force, 2)
        if self.now.abandoned or force <= self.now.stop:
            return
        self.now = replace(self.now, stop=force, stopped_by=self.now.stopped_by or by)
        if not self.now.launched or self.all_ended() or self.now.cause is not None:
            self.abandon(self.now.cause or problems.stopped_by(by))
            return
        if isinstance(self.now.phase, Starting):
            force = max(force, limits.STOP_WHILE_STARTING)
            self.now = replace(self.now, stop=force)
        for wait in ("start", "finish"):
            self.no_longer(wait)
        if not isinstance(self.now.phase, Stopping):
            self.enter(Stopping())
        self.wait("stop", limits.STOP_S[force])
        for device in self.unfinished():
            self.send(device, ms.StopAsked(run=self.now.plan.run, force=force))

    def on_stop_too_slow(self) -> None:
        names, force = [self.name(device) for device in self.unfinished()], self.now.stop
        if force >= 2:
            self.abandon(problems.stopped_by(self.now.stopped_by))
            return
        self.say(problems.slow_to_stop(names, limits.STOP_S[force], force + 1))
        self.stop(self.now.stopped_by, force + 1)

    def outputs_lost(self, why: Problem | None = None) -> None:
        problem = problems.outputs_missing(self.name(self.now.plan.chief.device), why)
        if self.now.stop < 0:
            self.fail(problem)
        else:
            self.say(str(problem))
            self.abandon(problem)

    def fail(self, problem: Problem, *, weak: bool = False) -> None:
        """Note a cause. A better one may follow a weak one for a moment; then everything ends."""
        self.cause(problem, weak=weak)
        if self.now.abandoned or ended(self.now.phase):
            return
        if not self.now.cause_is_weak:
            self.abandon(self.now.cause or problem)
        elif "cause" not in self.now.waits:
            for wait in ("start", "finish"):
                self.no_longer(wait)
            self.wait("cause", limits.CAUSE_S)

    def cause(self, problem: Problem, *, weak: bool = False) -> None:
        if self.now.cause is None or (self.now.cause_is_weak and not weak):
            self.now = replace(self.now, cause=problem, cause_is_weak=weak)

    def abandon(self, problem: Problem) -> None:
        """End every member's part now."""
        if self.now.abandoned:
            return
        self.now = replace(self.now, abandoned=True)
        for wait in tuple(self.now.waits):
            self.no_longer(wait)
        for device, part in self.now.parts.items():
            if part.linked:
                self.send(device, ms.RunAbandoned(run=self.now.plan.run, problem=problem))
        if not self.now.launched or self.all_ended():
            self.conclude()
        else:
            self.wait("end", limits.END_S)

    def conclude(self) -> None:
        now = self.now
        for wait in tuple(now.waits):
            self.no_longer(wait)
        phase: Phase
        if now.cause is not None:
            phase = Failed(problem=now.cause)
        elif now.stop >= 0:
            phase = Stopped(by=now.stopped_by)
        else:
            phase = Finished()
        if isinstance(phase, Finished):
            self.say_what_was_not_shared()
        out = summary(now.tally, self.now_s)
        if not sound_summary(out, now.plan):
            # Odd numbers of a member must not cost the rest of the summary.
            out = structs.replace(out, expectation=None, settled=None)
        self.emit(ev.RunSummarised(run=now.plan.run, summary=out))
        self.enter(phase)
        self.effects.append(Over())

    def say_what_was_not_shared(self) -> None:
        exits = self.exits()
        if self.now.plan.solo:
            return
        weights = {end.weights_sha256 for end in exits if end.weights_sha256}
        if not any(end.shared for end in exits):
            self.say(problems.nothing_shared())
        elif self.now.plan.strategy == "managed" and len(weights) > 1:
            self.say(problems.unequal_weights())

    def on_met(self) -> None:
        if all(part.phase in ("training", "ended") for part in self.now.parts.values()):
            self.no_longer("start")
            if self.now.plan.strategy == "own":
                # A loop of its own need not report steps: the script runs, that is all one can know.
                self.on_first_step()

    def on_first_step(self) -> None:
        if isinstance(self.now.phase, Starting) and not self.now.abandoned:
            self.no_longer("start")
            self.enter(Training())
