"""A member's machine: its questions, consents, runs, messages and ends."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec import structs

from core.run.participant import machine
from core.run.participant import state as pa
from core.run.participant.machine import same_run
from core.runtime.timers import SetTimer, TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits, trainer_messages
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest, ProjectFile, manifest_of
from core.vocabulary.phases import Exit, Failed, Finished, Preparing, Starting, Stopped, Training
from core.vocabulary.plan import Plan, Role, with_ports
from core.vocabulary.progress import EpochEnd, Expectation, LogLines
from core.vocabulary.traffic import From, LinkAway, LinkBack, LinkLost, Send
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.world import CLOSED, FINISHED, LOST, MANIFEST, OUTPUTS, failing, progress

PLAN = plan_of(project=MANIFEST.digest)
RUN = PLAN.run
THREE = plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest)


class Ben:
    """Ben's part in a run that Anna starts."""

    def __init__(self, plan: Plan = PLAN, checkpoint: Manifest | None = None) -> None:
        prepare = ms.Prepare(plan=plan, manifest=MANIFEST, checkpoint=checkpoint)
        self.known = pa.Participation(BEN, plan, prepare, "Anna's")
        self.effects: list[pa.Effect] = []
        self.now_s = 0.0

    def tell(self, *told: pa.Input) -> list[pa.Effect]:
        """Returns the last input's effects."""
        for each in told:
            self.known, effects = machine.step(self.known, each, self.now_s)
            self.effects += effects
        return list(effects)

    def ready(self) -> Ben:
        self.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 20001}))
        self.hear(ms.EventTold(event=ev.RunPlanned(plan=self.known.plan)))
        self.hear(ms.EventTold(event=ev.RunPhaseChanged(run=RUN, phase=Preparing())))
        return self

    def launched(self) -> Ben:
        self.ready()
        self.hear(ms.Launch(plan=self.known.plan))
        return self

    def hear(self, message: ms.Message) -> list[pa.Effect]:
        return self.tell(From(ANNA, message))

    def told(self) -> list[ms.Message]:
        return [effect.message for effect in self.effects if isinstance(effect, Send)]

    def reported(self) -> list[ev.MirroredEvent]:
        return [message.event for message in self.told() if isinstance(message, ms.EventTold)]

    def shown(self) -> list[object]:
        return [effect for effect in self.effects if isinstance(effect, Shown)]


def only(effects: Iterable[object], kind: type) -> list[object]:
    return [effect for effect in effects if isinstance(effect, kind)]


# --- what is asked of this node --------------------------------------------------------------


def test_a_refusal_declines_and_leaves_no_trace() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True, refusal=Problem(code="device-busy", what="busy.")))
    assert [type(effect) for effect in ben.effects] == [Send, pa.Leave]


# --- consent -----------------------------------------------------------------------------------


def test_the_user_is_shown_who_and_what_before_anything_happens() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False, differs={"train.py": "changed"}))
    question = ben.shown()[0]
    assert isinstance(question, ev.ConsentAsked)
    assert (question.name, question.script, question.project) == ("Anna's", "train.py", MANIFEST.digest)
    assert question.files == MANIFEST.files
    assert question.changed and question.checkpoint_bytes == 0
    assert question.differs == {"train.py": "changed"}
    assert not only(ben.effects, pa.ListMissing)


def test_a_checkpoint_that_comes_along_is_asked_about_and_counted() -> None:
    names = (("manifest.json", 20), ("now.bin", 50))
    files = [ProjectFile(path=name, size=size, sha256="a" * 64) for name, size in names]
    ben = Ben(checkpoint=manifest_of("", files))
    ben.tell(pa.Checked(allowed=False))
    question = ben.shown()[0]
    assert isinstance(question, ev.ConsentAsked) and question.checkpoint_bytes == 70
    ben.tell(pa.Decided(True), pa.Listed(73))
    phase = ben.reported()[-1]
    assert isinstance(phase, ev.MemberPhaseChanged)
    assert (phase.phase, phase.total) == ("receiving", 73)


def test_a_yes_goes_on_to_the_files() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.tell(pa.Decided(True))
    assert ben.shown()[-1] == ev.ConsentSettled(run=RUN, allowed=True)
    assert only(ben.effects, pa.ListMissing)


def test_no_declines_once() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.tell(pa.Decided(False))
    assert ben.shown()[-1] == ev.ConsentSettled(run=RUN, allowed=False)
    assert len(only(ben.told(), ms.Declined)) == 1
    assert isinstance(ben.known.stage, pa.Gone)


def test_a_question_that_nobody_answers_is_withdrawn() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.tell(TimerFired("consent"))
    assert ben.shown()[-1] == ev.ConsentSettled(run=RUN, allowed=False)
    assert only(ben.told(), ms.Declined)


def test_losing_the_starter_withdraws_the_question() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.tell(LinkLost(ANNA, CLOSED))
    assert ben.shown()[-1] == ev.ConsentSettled(run=RUN, allowed=False)
    assert isinstance(ben.known.stage, pa.Gone)


def test_a_starter_that_falls_silent_is_waited_for_with_the_question_open() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.tell(LinkAway(ANNA, LOST))
    assert isinstance(ben.known.stage, pa.Asking)
    assert ben.known.waits == {"away", "look"}, "whoever reads it has no limit while nobody hears the answer"
    ben.tell(LinkBack(ANNA))
    assert ben.known.waits == {"consent", "look"}
    ben.tell(LinkAway(ANNA, LOST), TimerFired("away"))
    assert ben.shown()[-1] == ev.ConsentSettled(run=RUN, allowed=False)
    assert isinstance(ben.known.stage, pa.Gone)


def test_nothing_starts_without_consent_whatever_the_starter_says() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    ben.hear(ms.Launch(plan=PLAN))
    ben.tell(pa.Listed(0), pa.FilesHere(), pa.MadeReady({}))
    assert not only(ben.effects, pa.StartTrainers)
    assert not only(ben.effects, pa.MakeReady)


# --- files ---------------------------------------------------------------------------------------


def test_only_missing_files_are_asked_for() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True), pa.Listed(9))
    assert ms.FilesWanted(run=RUN, total_bytes=9) in ben.told()
    assert not only(ben.effects, pa.MakeReady)
    ben.tell(pa.PiecesCame(2, 3, 5.0))
    coming = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="receiving", done=2, total=3, rate_bytes_s=5.0)
    assert coming in ben.reported()
    assert [type(effect) for effect in ben.tell(pa.FilesHere())][-1] is pa.MakeReady


def test_work_on_files_is_a_sign_of_life_before_the_first_byte_and_after_the_last() -> None:
    ben = Ben()

    def works(words: str) -> list[pa.Effect]:
        effects = ben.tell(pa.WorkDone(words, 2, 3))
        event = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="receiving", words=words, done=2, total=3)
        assert ben.reported()[-1] == event
        return effects

    ben.tell(pa.Checked(allowed=True))
    works("checking files")
    ben.tell(pa.Listed(9), pa.PiecesCame(9, 9))
    assert SetTimer("receive", limits.RECEIVE_S + limits.SLACK_S) in works("putting files in place")
    ben.tell(pa.FilesHere())
    works("copying files")
    ben.tell(pa.MadeReady({"worker:0": 20001}))
    told = len(ben.told())
    ben.tell(pa.WorkDone("copying files", 3, 3))
    assert len(ben.told()) == told, "too late"


def test_a_member_that_is_ready_waits_for_others_that_still_receive() -> None:
    ben = Ben(THREE).ready()
    coming = ev.MemberPhaseChanged(run=RUN, device=CLEO, phase="receiving", done=1, total=9)
    assert SetTimer("launch", limits.LAUNCH_S) in ben.hear(ms.EventTold(event=coming))


def test_files_come_from_the_member_that_the_starter_names_first() -> None:
    ben = Ben(THREE)
    ben.tell(pa.Checked(allowed=True))
    ben.hear(ms.FilesFrom(run=RUN, giver=CLEO))
    assert not only(ben.effects, pa.FetchFrom), "nothing is missing yet"
    ben.tell(pa.Listed(9))
    ben.tell(From(CLEO, ms.FilesFrom(run=RUN, giver=CLEO)))
    assert not only(ben.effects, pa.FetchFrom), "she is not the starter"
    ben.hear(ms.FilesFrom(run=RUN, giver=CLEO))
    ben.hear(ms.FilesFrom(run=RUN, giver=ANNA))
    assert only(ben.effects, pa.FetchFrom) == [pa.FetchFrom(CLEO)]


@pytest.mark.parametrize("giver", [BEN, DeviceId("nobody")])
def test_a_giver_that_is_no_member_is_replaced_by_the_starter(giver: DeviceId) -> None:
    ben = Ben(THREE)
    ben.tell(pa.Checked(allowed=True), pa.Listed(9))
    ben.hear(ms.FilesFrom(run=RUN, giver=giver))
    assert only(ben.effects, pa.FetchFrom) == [pa.FetchFrom(ANNA)]


def test_invariant_files_are_given_only_to_other_members_and_only_before_the_launch() -> None:
    ben = Ben(THREE)
    give = ms.GiveFiles(run=RUN, to=CLEO)
    ben.tell(pa.Checked(allowed=True))
    ben.hear(give)
    ben.tell(pa.Listed(9))
    for device in (ANNA, BEN, DeviceId("nobody")):
        ben.hear(ms.GiveFiles(run=RUN, to=device))
    ben.tell(From(CLEO, give))
    assert not only(ben.effects, pa.GiveTo)
    ben.hear(give)
    ben.tell(pa.FilesHere(), pa.MadeReady({"worker:0": 20001}))
    ben.hear(give)
    assert only(ben.effects, pa.GiveTo) == [pa.GiveTo(CLEO)] * 2
    ben.hear(ms.Launch(plan=THREE))
    ben.hear(give)
    assert len(only(ben.effects, pa.GiveTo)) == 2


def test_a_full_disk_declines_and_waits_for_the_starters_last_word() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True), pa.Listed(9))
    ben.tell(pa.PreparingFailed(Problem(code="disk-full", what="The disk is full.")))
    assert only(ben.told(), ms.Declined)
    assert isinstance(ben.known.stage, pa.Leaving)
    assert ben.known.waits == {"farewell"}


def test_a_member_that_fails_before_the_starter_heard_its_yes_is_free_at_once() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True))
    ben.tell(pa.PreparingFailed(Problem(code="disk-full", what="The disk is full.")))
    assert only(ben.told(), ms.Declined)
    assert pa.Leave(outputs_taken=False, joined=True) in ben.effects, "what was made for it is tidied up"
    assert isinstance(ben.known.stage, pa.Gone)
    assert not ben.known.waits


def test_a_member_that_said_yes_to_a_run_given_up_meanwhile_is_free_at_once() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True), pa.Listed(9))
    ben.hear(ms.RunAbandoned(run=RUN, problem=LOST))
    assert pa.Leave(outputs_taken=False, joined=True) in ben.effects
    assert isinstance(ben.known.stage, pa.Gone) and not ben.known.waits


@pytest.mark.parametrize("wait", ["receive", "launch"])
def test_a_member_leaves_a_starter_that_does_not_go_on(wait: str) -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True), pa.Listed(9))
    if wait == "launch":
        ben.tell(pa.FilesHere(), pa.MadeReady({"worker:0": 20001}))
    assert wait in ben.known.waits
    ben.tell(TimerFired(wait))
    assert "did not go on" in str(only(ben.told(), ms.Declined)[0])


# --- training --------------------------------------------------------------------------------------


def test_the_certificates_of_a_run_are_reported_and_those_of_all_come_back() -> None:
    ben = Ben(plan_of(project=MANIFEST.digest))
    ben.tell(
        pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 20001}, {"worker:0": b"ben's"})
    )
    assert ms.Prepared(run=RUN, ports={"worker:0": 20001}, certificates={"worker:0": b"ben's"}) in ben.told()
    ports = {ANNA: {"chief:0": 20000}, BEN: {"worker:0": 20001}}
    made = {ANNA: {"chief:0": b"anna's"}, BEN: {"worker:0": b"ben's"}}
    complete = with_ports(ben.known.plan, ports, made)
    assert pa.StartTrainers(complete) in ben.hear(ms.Launch(plan=complete))


def test_launch_starts_what_was_allowed_with_the_chosen_ports() -> None:
    ben = Ben().ready()
    tasks = tuple(structs.replace(task, port=task.port + 500) for task in PLAN.tasks)
    complete = structs.replace(PLAN, tasks=tasks)
    ben.hear(ms.Launch(plan=complete))
    assert only(ben.effects, pa.StartTrainers) == [pa.StartTrainers(complete)]


@pytest.mark.parametrize(
    ("told_s", "meet_s"),
    [(460.0, 460.0), (120.0, 120.0), (0.0, 120.0), (1e9, 120.0), (float("nan"), 120.0)],
)
def test_trainers_wait_for_a_laptop_that_loads_slowly_but_not_absurdly_long(
    told_s: float, meet_s: float
) -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 20001}, load_s=300.0))
    assert ms.Prepared(run=RUN, ports={"worker:0": 20001}, load_s=300.0) in ben.told()
    ben.hear(ms.Launch(plan=ben.known.plan, meet_s=told_s))
    assert only(ben.effects, pa.StartTrainers) == [pa.StartTrainers(ben.known.plan, meet_s)]


@pytest.mark.parametrize(
    "other",
    [
        structs.replace(PLAN, arguments=("--delete",)),
        structs.replace(PLAN, project=ProjectId("e" * 64)),
        structs.replace(PLAN, script="other.py"),
        structs.replace(PLAN, tasks=PLAN.tasks[::-1]),
        structs.replace(PLAN, strategy="own"),
    ],
)
def test_only_the_allowed_run_is_ever_started(other: Plan) -> None:
    assert not same_run(PLAN, other)
    ben = Ben().ready()
    ben.hear(ms.Launch(plan=other))
    assert not only(ben.effects, pa.StartTrainers)
    ends = only(ben.reported(), ev.MemberEnded)
    assert [end.task for end in ends] == ["worker:0"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("port", [8888, 5432, 19_999, 32_000])
def test_a_starter_opens_no_port_to_a_script_where_no_trainer_listens(port: int) -> None:
    ben = Ben().ready()
    ports = {ANNA: {"chief:0": port}, BEN: {"worker:0": 20_001}}
    ben.hear(ms.Launch(plan=with_ports(ben.known.plan, ports, {})))
    assert not only(ben.effects, pa.StartTrainers)
    (end,) = only(ben.reported(), ev.MemberEnded)
    assert isinstance(end, ev.MemberEnded) and end.exit.problem is not None
    assert end.exit.problem.code == "broken-talk"


def test_a_plan_that_no_cluster_can_have_is_not_started_and_the_reason_is_reported() -> None:
    plan = plan_of(hosts={ANNA: "127.0.0.1", BEN: "127.0.0.1"}, project=MANIFEST.digest)
    ben = Ben(plan)
    ben.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 21_000}))
    at_one_address = with_ports(plan, {ANNA: {"chief:0": 21_000}, BEN: {"worker:0": 21_000}}, {})
    assert same_run(plan, at_one_address)
    ben.hear(ms.Launch(plan=at_one_address))
    assert not only(ben.effects, pa.StartTrainers)
    (end,) = only(ben.reported(), ev.MemberEnded)
    assert isinstance(end, ev.MemberEnded) and end.exit.problem is not None
    assert (end.task, end.exit.problem.code) == ("worker:0", "same-address")


def test_a_phase_in_which_nothing_is_counted_counts_nothing() -> None:
    ben = Ben().ready()
    assert ev.MemberPhaseChanged(run=RUN, device=BEN, phase="prepared", done=0, total=0) in ben.reported()


def phases(ben: Ben) -> list[str]:
    return [event.phase for event in ben.reported() if isinstance(event, ev.MemberPhaseChanged)]


def test_the_phases_of_a_trainer_are_reported_once_each() -> None:
    ben = Ben().launched()
    for report in (
        trainer_messages.Booted(seconds=5.0, devices=()),
        trainer_messages.Connecting(),
        trainer_messages.Connecting(),
        trainer_messages.Met(strategy="MirroredStrategy", replicas=2),
    ):
        ben.tell(pa.TrainerReported("worker:0", report))
    assert phases(ben)[-3:] == ["starting", "meeting", "training"]
    last = ben.reported()[-1]
    assert isinstance(last, ev.MemberPhaseChanged)
    assert last.strategy == "MirroredStrategy"


def test_a_device_with_two_trainers_is_as_far_as_the_slower() -> None:
    plan = plan_of(fixed={BEN: (Role.WORKER, Role.PS)}, strategy="own", project=MANIFEST.digest)
    ben = Ben(plan)
    ben.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 20001, "ps:0": 20002}))
    ben.hear(ms.Launch(plan=plan))
    booted = trainer_messages.Booted(seconds=5.0, devices=())
    ben.tell(pa.TrainerReported("worker:0", booted))
    assert phases(ben)[-1] == "starting"
    ben.tell(pa.TrainerReported("ps:0", booted))
    assert phases(ben)[-1] == "training"


def test_one_of_two_trainers_with_the_same_steps_reports_them() -> None:
    plan = plan_of(fixed={BEN: (Role.WORKER, Role.WORKER)}, project=MANIFEST.digest)
    ben = Ben(plan)
    ben.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"worker:0": 20001, "worker:1": 20002}))
    ben.hear(ms.Launch(plan=plan))
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0, logs={"loss": 0.5})
    for task in ("worker:1", "worker:0"):
        ben.tell(pa.TrainerReported(task, progress(4)))
        ben.tell(pa.TrainerReported(task, trainer_messages.EpochEnded(epoch=epoch)))
    assert len(only(ben.reported(), ev.MemberProgressed)) == 1
    assert len(only(ben.reported(), ev.MemberEndedEpoch)) == 1


def test_every_step_that_the_trainer_reports_is_sent() -> None:
    """Only the trainer limits them to ten a second."""
    ben = Ben().launched()
    for number in range(100):
        ben.now_s = number / 100
        ben.tell(pa.TrainerReported("worker:0", progress(number)))
    steps = only(ben.reported(), ev.MemberProgressed)
    assert [step.progress.step for step in steps] == list(range(100))  # type: ignore[attr-defined]


def test_the_laptop_that_has_the_files_looks_for_none() -> None:
    anna = Ben()
    prepare = ms.Prepare(plan=PLAN, manifest=MANIFEST, source="/home/anna/project")
    anna.known = pa.Participation(ANNA, PLAN, prepare, "Anna's")
    anna.tell(pa.Checked(allowed=True))
    assert anna.told() == [ms.FilesWanted(run=RUN, total_bytes=0)]
    assert only(anna.effects, pa.MakeReady) and not only(anna.effects, pa.ListMissing)


def test_the_chief_reports_what_all_members_measured_alike() -> None:
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(43, 21))
    ben = Ben().launched()
    ben.tell(pa.TrainerReported("worker:0", trainer_messages.Measured(expectation=expectation)))
    assert not only(ben.reported(), ev.MemberMeasured)
    chief = Ben(plan_of(project=MANIFEST.digest, fixed={BEN: (Role.CHIEF,)}))
    chief.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"chief:0": 20000}))
    chief.hear(ms.Launch(plan=chief.known.plan))
    chief.tell(pa.TrainerReported("chief:0", trainer_messages.Measured(expectation=expectation)))
    told = ev.MemberMeasured(run=RUN, device=BEN, expectation=expectation)
    assert only(chief.reported(), ev.MemberMeasured) == [told]


def test_epochs_remarks_and_output_are_sent_whole() -> None:
    ben = Ben().launched()
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0, logs={"loss": 0.5})
    ben.tell(pa.TrainerReported("worker:0", trainer_messages.EpochEnded(epoch=epoch)))
    ben.tell(pa.TrainerReported("worker:0", trainer_messages.Said(words="jit_compile falls back.")))
    ben.tell(pa.TrainerReported("worker:0", trainer_messages.Evaluated(logs={"loss": 0.25})))
    ben.tell(pa.TrainerWrote(LogLines(task="worker:0", stream="stdout", text="hello")))
    said = [event.lines.text for event in ben.reported() if isinstance(event, ev.MemberLogged)]
    assert said == ["jit_compile falls back.", "evaluate: loss 0.25", "hello"]
    assert ev.MemberEndedEpoch(run=RUN, device=BEN, epoch=epoch) in ben.reported()


def test_stop_is_passed_to_the_trainers_and_reported() -> None:
    ben = Ben().launched()
    effects = ben.hear(ms.StopAsked(run=RUN, force=0))
    assert pa.StopTrainers(0) in effects
    assert phases(ben)[-1] == "stopping"
    ben.tell(pa.TrainerReported("worker:0", trainer_messages.Met(strategy="x", replicas=2)))
    assert phases(ben)[-1] == "stopping"


def test_trainers_are_told_which_ranks_are_gone() -> None:
    plan = plan_of((ANNA, BEN, CLEO), project=MANIFEST.digest)
    ben = Ben(plan).launched()
    effects = ben.hear(ms.GoOnWithout(run=RUN, generation=1, gone=(CLEO,)))
    assert effects == [pa.OrderTrainers(trainer_messages.MeetWithout(generation=1, gone=(2,)))]
    ben.tell(pa.TrainerEnded("worker:0", FINISHED))
    assert not ben.hear(ms.GoOnWithout(run=RUN, generation=2, gone=(CLEO,))), "nobody is left to be told"


LEFT = ev.MemberLeft(run=RUN, device=BEN, problem=LOST)


def test_a_member_that_left_trains_no_more_and_learns_how_the_run_ends() -> None:
    ben = Ben().launched()
    ben.hear(ms.EventTold(event=LEFT))
    assert pa.StopTrainers(2) in ben.hear(ms.GoOnWithout(run=RUN, generation=1, gone=(BEN,)))
    assert ben.known.gone == (BEN,) and ben.shown()[-1] == LEFT
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    assert isinstance(ben.known.stage, pa.Trained)
    for phase in (Starting(), Training(), Finished()):
        ben.hear(ms.EventTold(event=ev.RunPhaseChanged(run=RUN, phase=phase)))
    assert ben.shown()[-1] == ev.RunPhaseChanged(run=RUN, phase=Finished())
    assert isinstance(ben.effects[-1], pa.Leave)


def test_a_member_that_left_because_its_trainer_died_has_none_to_end() -> None:
    ben = Ben().launched()
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    own, other = (ms.GoOnWithout(run=RUN, generation=1, gone=(device,)) for device in (BEN, ANNA))
    assert not only(ben.hear(own), pa.StopTrainers)
    assert not only(Ben().launched().hear(other), pa.StopTrainers)


def test_the_chiefs_outputs_are_offered_after_its_end() -> None:
    plan = plan_of(fixed={BEN: (Role.CHIEF,)}, project=MANIFEST.digest)
    ben = Ben(plan)
    ben.tell(pa.Checked(allowed=True), pa.Listed(0), pa.MadeReady({"chief:0": 20000}))
    ben.hear(ms.Launch(plan=plan))
    assert only(ben.tell(pa.TrainerEnded("chief:0", FINISHED)), pa.FindOutputs)
    assert ben.tell(pa.OutputsFound(OUTPUTS)) == [
        Send(ANNA, ms.OutputsOffered(run=RUN, manifest=OUTPUTS)),
        pa.SendOutputs(OUTPUTS),
    ]


def test_a_workers_outputs_are_not_offered() -> None:
    ben = Ben().launched()
    assert not only(ben.tell(pa.TrainerEnded("worker:0", FINISHED)), pa.FindOutputs)
    assert isinstance(ben.known.stage, pa.Trained)


# --- the end -----------------------------------------------------------------------------------------


def test_an_abandoned_run_ends_every_trainer_at_once_and_once() -> None:
    ben = Ben().launched()
    abandoned = ms.RunAbandoned(run=RUN, problem=Problem(code="x", what="It is over."))
    assert pa.StopTrainers(2) in ben.hear(abandoned)
    assert not only(ben.hear(abandoned), pa.StopTrainers)


def test_a_lost_starter_ends_every_trainer_and_says_so_here() -> None:
    ben = Ben().launched()
    assert pa.StopTrainers(2) in ben.tell(LinkLost(ANNA, CLOSED))
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    gone, ended, phase = ben.shown()[-3:]
    assert gone == ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="ended", words="its link was lost")
    assert isinstance(ended, ev.MemberEnded)
    assert isinstance(phase, ev.RunPhaseChanged)
    assert isinstance(phase.phase, Failed)
    assert "Anna's, which started the run, was lost" in phase.phase.problem.what
    assert isinstance(ben.effects[-1], pa.Leave)


def test_a_starter_that_never_reports_the_end_is_not_waited_for() -> None:
    ben = Ben().launched()
    problem = Problem(code="script-error", what="On Anna's: line 3.")
    ben.hear(ms.RunAbandoned(run=RUN, problem=problem))
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    assert ben.known.waits == {"farewell"}
    ben.tell(TimerFired("farewell"))
    assert ben.shown()[-1] == ev.RunPhaseChanged(run=RUN, phase=Failed(problem=problem))
    assert isinstance(ben.known.stage, pa.Gone)


def test_a_last_phase_while_a_trainer_still_runs_ends_the_trainer() -> None:
    ben = Ben().launched()
    failed = Failed(problem=Problem(code="x", what="It is over."))
    effects = ben.hear(ms.EventTold(event=ev.RunPhaseChanged(run=RUN, phase=failed)))
    assert pa.StopTrainers(2) in effects
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    assert isinstance(ben.known.stage, pa.Gone)


def test_mirrored_events_that_cannot_follow_are_not_shown() -> None:
    ben = Ben().launched()
    before = ben.shown()
    for event in (
        ev.RunPhaseChanged(run=RUN, phase=Finished()),
        ev.RunPhaseChanged(run=RunId("another"), phase=Failed(problem=LOST)),
        ev.MemberEnded(run=RUN, device=CLEO, task="x", exit=Exit(reason="finished")),
        ev.RunPlanned(plan=structs.replace(PLAN, arguments=("--delete",))),
        ev.MemberLogged(run=RUN, device=BEN, lines=LogLines(task="worker:17", stream="stdout", text="x")),
    ):
        ben.hear(ms.EventTold(event=event))
    assert ben.shown() == before
    assert ben.known.left_out == 4


def test_messages_about_another_run_are_ignored() -> None:
    ben = Ben().launched()
    other = RunId("another")
    for message in (ms.StopAsked(run=other), ms.RunAbandoned(run=other, problem=LOST)):
        assert ben.hear(message) == []


def test_only_messages_of_the_starter_count() -> None:
    ben = Ben().launched()
    known = ben.known
    assert ben.tell(From(CLEO, ms.RunAbandoned(run=RUN, problem=LOST))) == []
    assert ben.known == known


def test_the_waits_of_a_member_outlast_the_starters() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    waits = [effect.seconds for effect in ben.effects if isinstance(effect, SetTimer)]
    assert waits[0] > limits.CONSENT_S


def test_a_member_whose_user_leaves_records_a_stop_and_no_failure() -> None:
    ben = Ben().launched()
    closed = Problem(code="closed", what="Tandem was closed on Ben's.")
    assert pa.StopTrainers(2) in ben.tell(pa.Abandoned(closed, "Ben's"))
    ben.tell(pa.TrainerEnded("worker:0", failing("killed")))
    assert ben.shown()[-1] == ev.RunPhaseChanged(run=RUN, phase=Stopped(by="Ben's"))
    assert isinstance(ben.effects[-1], pa.Leave)


def test_a_difference_is_reported_as_such() -> None:
    ben = Ben().launched()
    said = trainer_messages.Said(words="Local times differ.", difference=True)
    ben.tell(pa.TrainerReported("worker:0", said))
    messages = [effect.message for effect in ben.effects if isinstance(effect, Send)]
    (event,) = [message.event for message in messages[-1:] if isinstance(message, ms.EventTold)]
    assert isinstance(event, ev.MemberLogged) and event.lines.difference


def test_a_message_that_no_starter_sends_is_an_error() -> None:
    ben = Ben()
    ben.tell(pa.Checked(allowed=False))
    with pytest.raises(IllegalTransition):
        ben.tell(From(ANNA, ms.Prepared(run=RUN, ports={})))
