"""A member's side of a run, the starter's own part included: ``step(known, told, now_s)``. Pure.

Invariants: nothing of the project is run before this user (or an earlier decision) allowed it, and only what
was allowed; trainers run only between ``Launch`` and the end; a lost starter or an abandoned run ends them at
once; every part comes to ``Gone``.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from core.cluster.tf_config import check
from core.run import problems
from core.run.participant.ending import PartTurn
from core.run.participant.state import (
    Asked,
    Decided,
    Effect,
    FilesHere,
    FindOutputs,
    Listed,
    ListMissing,
    MadeReady,
    MakeReady,
    OutputsFound,
    Participation,
    PiecesCame,
    PreparingFailed,
    SendOutputs,
    Show,
    StarterLost,
    StartTrainers,
    StopTrainers,
    Told,
    TrainerEnded,
    TrainerSaid,
    TrainerWrote,
)
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits, trainer_messages
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, Problem, TandemError
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.phases import Exit, MemberPhase, ended
from core.vocabulary.plan import Plan
from core.vocabulary.state import apply

Stepped = tuple[Participation, tuple[Effect, ...]]


def take_part(me: DeviceId, prepare: ms.Prepare, starter_name: str) -> Participation:
    """The state before ``Asked``."""
    return Participation(
        me=me,
        plan=prepare.plan,
        manifest=prepare.manifest,
        starter_name=starter_name,
        checkpoint=prepare.checkpoint,
    )


def same_run(allowed: Plan, launched: Plan) -> bool:
    """Whether ``launched`` is ``allowed`` with other ports, and nothing else."""
    return _without_ports(allowed) == _without_ports(launched)


def _without_ports(plan: Plan) -> Plan:
    return structs.replace(plan, tasks=tuple(structs.replace(task, port=0) for task in plan.tasks))


def step(known: Participation, told: Told, now_s: float) -> Stepped:
    """One step. After ``Gone`` nothing happens any more."""
    if known.stage == "gone":
        return known, ()
    turn = _Step(known, now_s)
    turn.take(told)
    turn.leave_if_over()
    return turn.now, tuple(turn.effects)


class _Step(PartTurn):
    """One step under way: ``now`` is what is known so far, ``effects`` what is asked for so far."""

    def take(self, told: Told) -> None:
        stage = self.now.stage
        match told:
            case Asked() if stage == "new":
                self.on_asked(told)
            case Decided(allowed) if stage == "consent":
                self.on_decided(allowed)
            case Listed(files) if stage == "listing":
                self.on_listed(files)
            case PiecesCame(done, total) if stage == "receiving":
                self.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
                self.say_phase("receiving", done=done, total=total)
            case FilesHere() if stage == "receiving":
                self.no_longer("receive")
                self.to("making", MakeReady())
            case MadeReady(ports) if stage == "making":
                self.to("ready")
                self.send(ms.Prepared(run=self.now.plan.run, ports=dict(ports)))
                self.say_phase("prepared")
                self.wait("launch", limits.LAUNCH_S)
            case PreparingFailed(problem) if stage in ("listing", "receiving", "making"):
                self.decline(problem)
            case From(device, message) if device == self.now.plan.starter:
                self.on_message(message)
            case StarterLost(problem):
                self.on_starter_lost(problem)
            case TrainerSaid(task, report) if task in self.now.doing:
                self.on_report(task, report)
            case TrainerWrote(lines):
                self.report(ev.MemberLogged(run=self.now.plan.run, device=self.now.me, lines=lines))
            case TrainerEnded(task, end) if task in self.now.doing:
                self.on_exit(task, end)
            case OutputsFound(manifest, problem) if not self.now.abandoned:
                offer = ms.OutputsOffered(run=self.now.plan.run, manifest=manifest, problem=problem)
                self.send(offer)
                self.effects.append(SendOutputs(manifest))
            case TimerFired(wait) if wait in self.now.waits:
                self.now = replace(self.now, waits=self.now.waits - {wait})
                self.on_wait_over(wait)
            case _:
                pass

    # --- preparing -----------------------------------------------------------------------------------------

    def on_asked(self, asked: Asked) -> None:
        if asked.refusal is not None:
            self.decline(asked.refusal)
        elif asked.allowed or self.now.local:
            self.join()
        else:
            plan = self.now.plan
            question = ev.ConsentAsked(
                run=plan.run,
                device=plan.starter,
                name=self.now.starter_name,
                project=plan.project,
                script=plan.script,
                arguments=plan.arguments,
                files=self.now.manifest.files,
                changed=asked.changed,
                checkpoint_bytes=self.checkpoint_bytes,
            )
            self.to("consent", Show(question))
            self.say_phase("consent")
            self.wait("consent", limits.CONSENT_S + limits.SLACK_S)

    @property
    def checkpoint_bytes(self) -> int:
        return 0 if self.now.checkpoint is None else self.now.checkpoint.total_bytes

    def on_decided(self, allowed: bool) -> None:
        if allowed:
            self.settle(True)
            self.join()
        else:
            self.decline(problems.refused_by_user())

    def join(self) -> None:
        self.now = replace(self.now, joined=True)
        self.to("listing", ListMissing())

    def on_listed(self, files: tuple[int, ...]) -> None:
        self.send(ms.FilesWanted(run=self.now.plan.run, files=files))
        if files:
            self.to("receiving")
            project = self.now.manifest
            total = project.total_bytes if files[0] < len(project.files) else 0
            if files[-1] >= len(project.files):
                total += self.checkpoint_bytes
            self.say_phase("receiving", total=total)
            self.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
        else:
            self.to("making", MakeReady())

    # --- the starter's word --------------------------------------------------------------------------------

    def on_message(self, message: Message) -> None:
        if getattr(message, "run", self.now.plan.run) != self.now.plan.run:
            return
        match message:
            case ms.Launch(plan=plan) if self.now.stage == "ready":
                self.on_launch(plan)
            case ms.StopAsked(force=force) if self.now.stage == "running":
                for task in self.now.doing:
                    self.now = replace(self.now, doing=MappingProxyType({**self.now.doing, task: "stopping"}))
                self.effects.append(StopTrainers(max(0, min(force, 2))))
                self.say_doing()
            case ms.RunAbandoned(problem=problem):
                self.leave(problem)
            case ms.Mirrored(event=event):
                self.on_mirrored(event)
            case ms.OutputsReceived():
                self.now = replace(self.now, outputs_taken=True)
            case _:
                pass

    def on_launch(self, plan: Plan) -> None:
        self.no_longer("launch")
        tasks = self.now.plan.tasks_of(self.now.me)
        try:
            if not same_run(self.now.plan, plan):
                # What this user allowed is this run; nothing else is ever started.
                raise TandemError.of(problems.bad_message(self.now.starter_name))
            check(plan)
        except TandemError as error:
            end = Exit(reason="killed", problem=error.problem, shared=False)
            for task in tasks:
                self.report(
                    ev.MemberEnded(run=self.now.plan.run, device=self.now.me, task=task.name, exit=end)
                )
            self.leave(error.problem)
            return
        doing: dict[str, MemberPhase] = {task.name: "starting" for task in tasks}
        self.now = replace(self.now, plan=plan, doing=MappingProxyType(doing))
        self.to("running", StartTrainers(plan))
        self.say_doing()

    def on_mirrored(self, event: RunEvent) -> None:
        """The starter's events are shown only where they can follow; a last phase ends this part."""
        if self.now.local:
            if isinstance(event, ev.RunPhaseChanged) and ended(event.phase):
                self.conclude()
            return
        if not self.now.joined or self.now.concluded or self.now.starter_lost:
            return
        if isinstance(event, ev.RunPlanned) and not same_run(self.now.plan, event.plan):
            return
        try:
            shown = apply(self.now.shown, event)
        except IllegalTransition:
            return
        self.now = replace(self.now, shown=shown)
        self.effects.append(Show(event))
        if shown.run is not None and shown.run.over:
            self.conclude()

    def on_starter_lost(self, problem: Problem) -> None:
        if self.now.local or self.now.starter_lost:
            return
        self.now = replace(self.now, starter_lost=True)
        self.leave(problems.lost_starter(self.now.starter_name, problem))

    # --- trainers ------------------------------------------------------------------------------------------

    def on_report(self, task: str, report: trainer_messages.Report) -> None:
        run, me = self.now.plan.run, self.now.me
        match report:
            case trainer_messages.Booted() if self.now.plan.solo or self.now.plan.strategy == "own":
                self.does(task, "training")
            case trainer_messages.Meeting():
                self.does(task, "meeting")
            case trainer_messages.Met(strategy=strategy):
                self.now = replace(self.now, strategy=strategy)
                self.does(task, "training")
            case trainer_messages.Progressed(progress=progress) if self.speaks(task):
                if self.now_s - self.now.progressed_s >= limits.PROGRESS_GAP_S:
                    self.now = replace(self.now, progressed_s=self.now_s)
                    self.report(ev.MemberProgressed(run=run, device=me, progress=progress))
            case trainer_messages.Measured(expectation=expectation):
                if task == self.now.plan.chief.name:
                    self.report(ev.MemberMeasured(run=run, device=me, expectation=expectation))
            case trainer_messages.EpochEnded(epoch=epoch) if self.speaks(task):
                self.report(ev.MemberEndedEpoch(run=run, device=me, epoch=epoch))
            case trainer_messages.Evaluated(logs=logs):
                self.say(task, "evaluate: " + ", ".join(f"{key} {value:.4g}" for key, value in logs.items()))
            case trainer_messages.Said(words=words):
                self.say(task, words)
            case _:
                pass

    def speaks(self, task: str) -> bool:
        """Of several trainers here, which do the same steps, the first tells them."""
        return task == self.now.plan.tasks_of(self.now.me)[0].name

    def does(self, task: str, phase: MemberPhase) -> None:
        if self.now.doing[task] != "stopping":
            self.now = replace(self.now, doing=MappingProxyType({**self.now.doing, task: phase}))
            self.say_doing()

    def on_exit(self, task: str, end: Exit) -> None:
        left = {name: phase for name, phase in self.now.doing.items() if name != task}
        self.now = replace(self.now, doing=MappingProxyType(left))
        self.report(ev.MemberEnded(run=self.now.plan.run, device=self.now.me, task=task, exit=end))
        if task == self.now.plan.chief.name and not self.now.abandoned:
            self.effects.append(FindOutputs())
        if left:
            self.say_doing()
        elif not self.now.abandoned:
            self.to("leaving")  # its end is the starter's to say, however long the others still train

    # --- leaving -------------------------------------------------------------------------------------------

    def on_wait_over(self, wait: Wait) -> None:
        name = self.now.starter_name
        match wait:
            case "consent":
                self.decline(problems.no_consent(["this laptop"]))
            case "receive" | "launch":
                self.decline(problems.never_launched(name))
            case "farewell":
                self.now = replace(self.now, starter_lost=True)
