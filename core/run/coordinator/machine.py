"""The starter's side of a run: ``step(known, told, now_s)`` → what is known then, and effects. Pure.

Invariants: one last phase and nothing after it; before it, a wait is pending or a trainer runs; every member
that is still linked is told that the run is over. The first cause of a failure is the one that is named.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from core.cluster.tf_config import check
from core.run import problems
from core.run.coordinator.ending import Conclusion
from core.run.coordinator.state import (
    Begun,
    Coordination,
    Effect,
    MemberLost,
    NodeEnds,
    OutputsCame,
    OutputsFailed,
    OutputsStored,
    SendFiles,
    SendingFailed,
    StopWanted,
    TakeOutputs,
    Told,
)
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.phases import Exit, Preparing, Starting, ended
from core.vocabulary.plan import with_ports
from core.vocabulary.plausible import sound

Stepped = tuple[Coordination, tuple[Effect, ...]]


def step(known: Coordination, told: Told, now_s: float) -> Stepped:
    """One step. After the last phase nothing happens any more."""
    if ended(known.phase):
        return known, ()
    turn = _Step(known, now_s)
    turn.take(told)
    return turn.now, tuple(turn.effects)


class _Step(Conclusion):
    """One step under way: ``now`` is what is known so far, ``effects`` what is asked for so far."""

    def take(self, told: Told) -> None:
        match told:
            case Begun():
                self.begin()
            case From(device, message) if device in self.now.parts and self.part(device).linked:
                self.on_message(device, message)
            case SendingFailed(device, problem) if not self.now.launched:
                self.fail(problems.declined(self.name(device), problem))
            case MemberLost(device, problem) if device in self.now.parts and self.part(device).linked:
                self.on_lost(device, problem)
            case StopWanted(by, force):
                self.stop(by, force)
            case NodeEnds(by):
                self.now = replace(self.now, stop=2, stopped_by=self.now.stopped_by or by)
                self.abandon(problems.closed(by))
            case TimerFired(wait) if wait in self.now.waits:
                self.now = replace(self.now, waits=self.now.waits - {wait})
                self.on_wait_over(wait)
            case OutputsCame() if "outputs" in self.now.waits:
                self.wait("outputs", limits.OUTPUTS_S)
            case OutputsStored(paths) if self.now.outputs == "coming":
                self.now = replace(
                    self.now, outputs="here", tally=replace(self.now.tally, outputs=tuple(paths))
                )
                self.send(self.now.plan.chief.device, ms.OutputsReceived(run=self.now.plan.run))
                self.go_on()
            case OutputsFailed(problem) if self.now.outputs == "coming":
                self.now = replace(self.now, outputs="here")
                self.outputs_lost(problem)
            case _:
                pass

    # --- preparing -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        now = self.now
        self.emit(ev.RunPlanned(plan=now.plan))
        self.enter(Preparing())
        self.wait("consent", limits.CONSENT_S)
        for device in now.parts:
            source = now.source if device == now.me else ""
            prepare = ms.Prepare(
                plan=now.plan, manifest=now.manifest, source=source, checkpoint=now.checkpoint
            )
            self.send(device, prepare)

    def on_message(self, device: DeviceId, message: Message) -> None:
        if getattr(message, "run", self.now.plan.run) != self.now.plan.run:
            return
        match message:
            case ms.FilesWanted(files=files):
                self.on_consent(device, files)
            case ms.Prepared(ports=ports):
                self.on_prepared(device, ports)
            case ms.Declined(problem=problem):
                self.fail(problems.declined(self.name(device), problem))
            case ms.StopAsked(force=force):
                self.stop(self.name(device), force)
            case ms.Reported(event=event):
                self.on_report(device, event)
            case ms.OutputsOffered():
                self.on_outputs_offered(device, message)
            case _:
                pass

    def on_consent(self, device: DeviceId, files: tuple[int, ...]) -> None:
        if self.now.abandoned or self.part(device).joined:
            return
        self.know(device, replace(self.part(device), joined=True))
        if device != self.now.me:
            # What it missed while its user was asked.
            for event in (
                ev.RunPlanned(plan=self.now.plan),
                ev.RunPhaseChanged(run=self.now.plan.run, phase=self.now.phase),
            ):
                self.send(device, ms.Mirrored(event=event))
        if files:
            self.effects.append(SendFiles(device, files))
        if all(part.joined for part in self.now.parts.values()):
            self.no_longer("consent")
        self.wait("receive", limits.RECEIVE_S)

    def on_prepared(self, device: DeviceId, ports: dict[str, int]) -> None:
        part, tasks = self.part(device), self.now.plan.tasks_of(device)
        if self.now.abandoned or not part.joined or part.ports is not None:
            return
        lowest = 0 if self.now.plan.solo else 1024
        if set(ports) != {task.name for task in tasks} or not all(
            lowest <= port <= 65535 for port in ports.values()
        ):
            self.fail(problems.bad_message(self.name(device)))
            return
        self.know(device, replace(part, ports=MappingProxyType(dict(ports))))
        if all(each.ports is not None for each in self.now.parts.values()):
            self.launch()
        elif all(each.ports is not None for each in self.now.parts.values() if each.joined):
            self.no_longer("receive")  # only users' answers are waited for now

    def launch(self) -> None:
        ports = {device: part.ports or {} for device, part in self.now.parts.items()}
        plan = with_ports(self.now.plan, ports)
        try:
            check(plan)
        except TandemError as error:
            self.fail(error.problem)
            return
        self.no_longer("receive")
        self.now = replace(self.now, plan=plan, launched=True)
        self.emit(ev.RunPlanned(plan=plan))
        self.enter(Starting())
        self.wait("start", limits.START_S)
        for device in self.now.parts:
            self.send(device, ms.Launch(plan=plan))

    # --- training ------------------------------------------------------------------------------------------

    def on_report(self, device: DeviceId, event: RunEvent) -> None:
        """A member speaks for itself alone, and only of what happens at a member."""
        if getattr(event, "run", None) != self.now.plan.run or getattr(event, "device", None) != device:
            return
        match event:
            case ev.MemberPhaseChanged():
                self.know(device, replace(self.part(device), phase=event.phase))
                self.emit(event)
                if event.phase == "receiving" and "receive" in self.now.waits:
                    self.wait("receive", limits.RECEIVE_S)
                if event.phase == "training":
                    self.on_met()
            case ev.MemberMeasured(expectation=expectation):
                if device == self.now.plan.chief.device and sound(expectation, self.now.plan):
                    self.emit(event)
            case ev.MemberProgressed() | ev.MemberEndedEpoch():
                self.on_first_step()
                self.emit(event)
            case ev.MemberLogged(lines=lines):
                # Each task's words are kept in memory and in a file of their own: no made-up tasks.
                if lines.task in {task.name for task in self.now.plan.tasks_of(device)}:
                    self.emit(event)
            case ev.MemberEnded():
                self.on_exit(device, event)
            case _:
                pass

    def on_exit(self, device: DeviceId, event: ev.MemberEnded) -> None:
        part, end = self.part(device), event.exit
        mine = {task.name for task in self.now.plan.tasks_of(device)}
        if not self.now.launched or event.task not in mine or event.task in part.exits:
            return
        part = replace(part, exits=MappingProxyType({**part.exits, event.task: end}))
        if mine <= set(part.exits):
            part = replace(part, phase="ended")
        self.know(device, part)
        self.emit(event)
        if self.is_failure(end, event.task):
            problem = problems.trainer_failed(self.now.plan, device, event.task, end)
            self.fail(problem, weak=end.reason in problems.CONSEQUENCES)
        self.go_on()

    def is_failure(self, end: Exit, task: str) -> bool:
        if end.reason == "finished":
            return False
        if self.now.abandoned:
            # What was killed has no say; a fault of its own may still be the better cause.
            return self.now.cause is not None and end.reason in problems.OWN_FAULTS
        if self.now.stop >= 0:
            return self.now.stop == 0 and end.reason in problems.OWN_FAULTS
        return not (self.served() and task not in {each.name for each in self.own_enders()})

    # --- ending --------------------------------------------------------------------------------------------

    def on_outputs_offered(self, device: DeviceId, offer: ms.OutputsOffered) -> None:
        chief = self.now.plan.chief
        if device != chief.device or self.now.outputs != "expected" or self.now.abandoned:
            return
        if chief.name not in self.part(device).exits:
            return
        self.now = replace(self.now, outputs="coming")
        if offer.problem is not None:
            self.say(str(offer.problem))
        if "outputs" in self.now.waits:
            self.wait("outputs", limits.OUTPUTS_S)
        self.effects.append(TakeOutputs(device, offer.manifest))

    def on_lost(self, device: DeviceId, problem: Problem) -> None:
        self.know(device, replace(self.part(device), linked=False, phase="ended"))
        words = "its link was lost"
        self.emit(ev.MemberPhaseChanged(run=self.now.plan.run, device=device, phase="ended", words=words))
        verdict = problems.lost_device(self.name(device), problem)
        tasks = self.now.plan.tasks_of(device)
        done = all(task.name in self.part(device).exits for task in tasks)
        is_chief = device == self.now.plan.chief.device
        if self.now.abandoned or (done and (self.now.outputs == "here" or not is_chief)):
            if self.now.cause_is_weak and not done:
                # TensorFlow misses a silent laptop a little before its link does.
                self.cause(verdict)
            self.go_on()
        elif done:
            self.outputs_lost(problem)
        elif self.now.stop >= 0:
            self.abandon(verdict)  # its peers would hang at their next step; the user wanted the end anyway
        else:
            self.fail(verdict)

    def on_wait_over(self, wait: Wait) -> None:
        parts = self.now.parts
        match wait:
            case "consent":
                self.fail(problems.no_consent([self.name(d) for d, part in parts.items() if not part.joined]))
            case "receive":
                late = [d for d, part in parts.items() if part.joined and part.ports is None]
                self.fail(problems.not_prepared([self.name(device) for device in late]))
            case "start":
                late = [d for d, part in parts.items() if part.phase not in ("training", "ended")]
                ports = [task.port for d in late for task in self.now.plan.tasks_of(d) if task.port]
                self.fail(problems.not_started([self.name(device) for device in late], ports))
            case "cause":
                self.abandon(self.now.cause or problems.bad_message(self.name(self.now.plan.chief.device)))
            case "end":
                self.say(problems.ended_by_force([self.name(device) for device in self.unfinished()]))
                self.conclude()
            case "stop":
                self.on_stop_too_slow()
            case "finish":
                if self.now.servants == 1:
                    self.end_servants(2)
                else:
                    self.fail(problems.still_running([self.name(device) for device in self.unfinished()]))
            case "outputs":
                self.outputs_lost()
