"""Who is introduced to whom, for how long, and what they may say."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from core.cluster.make_plan import make_plan
from core.home.certificate import build, device_id
from core.home.trust import TrustedPeer, TrustStore, add, forget
from core.run.introductions import FOLLOWS_S, Introduced, Introductions
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.events import MemberPhaseChanged
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.phases import Failed, Finished, Outcome, Stopped
from core.vocabulary.plan import Moment, NodePin, Plan, Resumption, Role, RunOwner, RunSpec
from tests.core.certificates import device_key, misnamed_certificate, odd_certificate
from tests.core.samples import sample

CERTIFICATES = {name: build(device_key(n)) for n, name in enumerate(("anna", "ben", "cleo", "dora"), 1)}
ANNA, BEN, CLEO, DORA = IDS = tuple(map(device_id, CERTIFICATES.values()))
NAMES = dict(zip(IDS, CERTIFICATES, strict=True))
FIRST, NEXT, OTHER = RunId("20261128-100000-00000001"), RunId("20261128-100100-00000002"), RunId("x")
WENT_ON = Stopped(by="cleo", goes_on=True)
LOST = Failed(problem=Problem(code="lost", what="The starter was lost."))


def plan_of(
    *them: DeviceId,
    run: RunId = FIRST,
    owner: RunOwner | None = None,
    resumes: RunId = FIRST,
    port: int = 20_000,
) -> Plan:
    """Started by the first of them."""
    plan = make_plan(
        RunSpec(script="train.py"),
        starter=them[0],
        project=ProjectId("d" * 64),
        script="train.py",
        strategy="managed",
        roles={device: (Role.CHIEF if device == them[0] else Role.WORKER,) for device in them},
        names={device: NAMES.get(device, "odd") for device in them},
        hosts={device: f"10.0.0.{place}" for place, device in enumerate(them)},
    )
    pins = {
        device: NodePin(certificate=CERTIFICATES[NAMES[device]], port=27600)
        for device in them
        if device in NAMES
    }
    members = tuple(replace(each, node=pins.get(each.device)) for each in plan.members)
    tasks = tuple(replace(task, port=port) for task in plan.tasks)
    moment = Moment(fit=0, epoch=1, batch=0, step=40)
    resume = owner and Resumption(run=resumes, checkpoint=ProjectId("c" * 64), moment=moment, owner=owner)
    return replace(plan, run=run, members=members, tasks=tasks, resume=resume)


def pinned(plan: Plan, device: DeviceId, pin: NodePin | None) -> Plan:
    members = tuple(replace(each, node=pin) if each.device == device else each for each in plan.members)
    return replace(plan, members=members)


def paired(*names: str) -> TrustStore:
    store = TrustStore(CLEO)
    for name in names:
        store = add(store, TrustedPeer(cert_der=CERTIFICATES[name], name_at_pairing=name, paired_at=0.0))
    return store


ALL = plan_of(ANNA, BEN, CLEO, DORA)
OWNER = RunOwner(device=ANNA, run=FIRST)
TRUST = paired("anna")


@pytest.fixture
def cleo() -> Introductions:
    """In anna's run, and paired with her alone."""
    return Introductions(CLEO).planned(ALL, TRUST)


def test_members_are_introduced_and_the_starter_is_not(cleo: Introductions) -> None:
    assert cleo.among(TRUST) == {
        BEN: Introduced(CERTIFICATES["ben"], "ben", "10.0.0.1:27600"),
        DORA: Introduced(CERTIFICATES["dora"], "dora", "10.0.0.3:27600"),
    }
    assert cleo.ends_in_s is None


def test_nobody_is_introduced_before_the_launch() -> None:
    early = Introductions(CLEO).planned(plan_of(ANNA, BEN, CLEO, port=0), TRUST)
    assert not early.among(TRUST)
    assert early.planned(plan_of(ANNA, BEN, CLEO), TRUST).among(TRUST).keys() == {BEN}


def test_a_starter_that_is_not_paired_introduces_nobody() -> None:
    assert not Introductions(CLEO).planned(ALL, paired("dora")).among(paired("dora"))


def test_a_run_that_does_not_outlast_its_starter_introduces_nobody() -> None:
    assert not Introductions(CLEO).planned(replace(ALL, exchange="sealed"), TRUST).among(TRUST)


def test_the_users_own_decisions_come_first(cleo: Introductions) -> None:
    """Paired laptops stay paired; forgotten ones stay out, and so do those whom a forgotten starter named."""
    assert cleo.among(paired("anna", "ben")).keys() == {DORA}
    assert cleo.among(forget(paired("anna", "ben"), BEN)).keys() == {DORA}
    assert not cleo.among(forget(paired("anna", "ben"), ANNA))


def test_an_older_starter_pins_nobody() -> None:
    plan = ALL
    for device in (BEN, DORA):
        plan = pinned(plan, device, None)
    assert not Introductions(CLEO).planned(plan, TRUST).among(TRUST)


@pytest.mark.parametrize(
    "pin",
    [
        NodePin(certificate=CERTIFICATES["anna"], port=27600),  # the starter in another's place
        NodePin(certificate=CERTIFICATES["dora"], port=27600),
        NodePin(certificate=b"none", port=27600),
        NodePin(certificate=CERTIFICATES["ben"], port=22),
        NodePin(certificate=CERTIFICATES["ben"], port=1 << 16),
        NodePin(certificate=CERTIFICATES["ben"], port=-1),
    ],
)
def test_invariant_nobody_is_introduced_in_anothers_place(pin: NodePin) -> None:
    assert Introductions(CLEO).planned(pinned(ALL, BEN, pin), TRUST).among(TRUST).keys() == {DORA}


@pytest.mark.parametrize(
    "certificate", [odd_certificate(), odd_certificate(ca=True), misnamed_certificate(2), b"none"]
)
def test_invariant_a_certificate_that_could_stand_for_another_pin_is_not_accepted(certificate: bytes) -> None:
    """An authority's, or one with a name that is not its key's."""
    odd = device_id(certificate)
    plan = pinned(plan_of(ANNA, odd, CLEO), odd, NodePin(certificate=certificate, port=27600))
    assert not Introductions(CLEO).planned(plan, TRUST).among(TRUST)


def test_a_paired_device_keeps_its_pin_whatever_an_introduction_says(cleo: Introductions) -> None:
    """An id is the hash of a certificate: another pin for it is nobody's."""
    plan = pinned(ALL, BEN, NodePin(certificate=CERTIFICATES["dora"], port=27600))
    assert BEN not in Introductions(CLEO).planned(plan, paired("anna", "ben")).nodes
    assert BEN not in cleo.among(paired("anna", "ben"))


# --- how long ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "left_s"),
    [
        (Finished(), limits.FAREWELL_S),
        (Stopped(by="anna"), limits.FAREWELL_S),
        (Stopped(by="anna", goes_on=True), limits.FAREWELL_S),  # to let a laptop in: its starter goes on
        (LOST, limits.FAREWELL_S),
        (WENT_ON, FOLLOWS_S),
    ],
)
def test_introductions_end_with_the_run_unless_it_goes_on_without_its_starter(
    cleo: Introductions, phase: Outcome, left_s: float
) -> None:
    after = cleo.ended(FIRST, phase)
    assert after.ends_in_s == left_s and after.lost == (phase == WENT_ON)
    assert cleo.ended(OTHER, phase) is cleo


def test_introductions_last_as_long_as_somebody_stands_in(cleo: Introductions) -> None:
    follows = plan_of(BEN, CLEO, DORA, run=NEXT, owner=OWNER)
    during = cleo.ended(FIRST, WENT_ON).planned(follows, TRUST)
    assert during.ends_in_s is None and during.among(TRUST).keys() == {BEN, DORA}
    assert during.ended(NEXT, WENT_ON).lost, "the stand-in is lost as well"
    assert not during.ended(NEXT, Stopped(by="ben", goes_on=True)).lost, "it hands the run back"


def test_another_run_ends_introductions(cleo: Introductions) -> None:
    assert cleo.planned(cleo.plan or ALL, TRUST) is cleo, "told again"
    assert not cleo.planned(plan_of(ANNA, CLEO, run=OTHER), TRUST).among(TRUST)
    assert not cleo.planned(plan_of(CLEO, run=OTHER), TRUST).among(TRUST), "one of this laptop's own"
    other = RunOwner(device=ANNA, run=OTHER)
    assert not cleo.planned(plan_of(BEN, CLEO, run=NEXT, owner=other), TRUST).among(TRUST)


# --- what they may say -------------------------------------------------------------------------------------

STARTERS = {ms.FilesFrom, ms.GiveFiles, ms.Launch, ms.StopAsked, ms.GoOnWithout, ms.RunAbandoned}
STARTERS |= {ms.EventTold, ms.OutputsReceived}
MEMBERS = {ms.FilesWanted, ms.Prepared, ms.Declined, ms.EventTold, ms.StatusTold, ms.OutputsOffered}
MEMBERS |= {ms.StopAsked}
CHECKPOINTS = {ms.CheckpointAsked, ms.CheckpointTold, ms.CheckpointWanted}
NOTHING = {ms.Hello, ms.Bye, ms.TelemetrySent, ms.ReachAsked, ms.ReachTold, ms.ModulesAsked, ms.ModulesTold}
NOTHING |= {ms.LoadTold, ms.ReportSent, ms.TookOver, ms.TakenBack, ms.InstallAsked, ms.InstallTold}
"""Answers to this laptop's own questions among them: they are not asked for anew."""


def message_of(kind: type[ms.Message], run: RunId) -> ms.Message:
    if kind is ms.Prepare:
        return prepare(plan_of(BEN, CLEO, run=NEXT, owner=OWNER))
    if kind is ms.BusyTold:
        return ms.BusyTold(busy=False)
    if kind is ms.Launch:
        return ms.Launch(plan=replace(ALL, run=run))
    if kind is ms.EventTold:
        return ms.EventTold(event=MemberPhaseChanged(run=run, device=BEN, phase="training"))
    message: ms.Message = sample(kind)
    return replace(message, run=run) if isinstance(message, ms.RunMessage) else message


def prepare(plan: Plan) -> ms.Prepare:
    return ms.Prepare(plan=plan, manifest=Manifest(script="train.py", files=()))


def said(here: Introductions, run: RunId, device: DeviceId = BEN) -> set[type[ms.Message]]:
    """The kinds of messages that this device may send here; those about a run, about this one."""
    return {kind for kind in get_args(ms.Message) if here.received(device, message_of(kind, run)) is not None}


def asked(here: Introductions) -> Introductions:
    after = here.received(BEN, message_of(ms.Prepare, NEXT))
    assert after is not None
    return after


def test_every_message_is_either_allowed_or_refused() -> None:
    kinds = STARTERS | MEMBERS | CHECKPOINTS | NOTHING | {ms.BusyTold, ms.Prepare, ms.LoadAsked}
    assert kinds == set(get_args(ms.Message))


@pytest.mark.parametrize("run", [FIRST, OTHER])
def test_while_the_starter_is_there_members_may_only_report_whether_they_are_busy(
    cleo: Introductions, run: RunId
) -> None:
    assert said(cleo, run) == {ms.BusyTold}
    assert said(cleo.ended(FIRST, Stopped(by="anna", goes_on=True)), run) == {ms.BusyTold}


def test_a_lost_starters_members_ask_for_checkpoints_and_to_go_on(cleo: Introductions) -> None:
    lost = cleo.ended(FIRST, WENT_ON)
    assert said(lost, FIRST) == {ms.BusyTold, ms.Prepare} | CHECKPOINTS
    assert said(lost, OTHER) == {ms.BusyTold, ms.Prepare}


def test_a_stand_in_may_send_what_a_starter_sends_about_that_run_only(cleo: Introductions) -> None:
    during = asked(cleo.ended(FIRST, WENT_ON))
    assert said(during, NEXT) == {ms.BusyTold, ms.Prepare} | STARTERS
    during = during.planned(plan_of(BEN, CLEO, run=NEXT, owner=OWNER), TRUST)
    assert said(during, NEXT) == {ms.BusyTold, ms.LoadAsked} | STARTERS
    assert said(during, OTHER) == {ms.BusyTold, ms.LoadAsked}
    assert said(during, NEXT, DORA) == {ms.BusyTold}, "and nobody else does"


def test_members_report_to_a_stand_in() -> None:
    ben = Introductions(BEN).planned(ALL, TRUST).ended(FIRST, Stopped(by="ben", goes_on=True))
    ben = ben.planned(plan_of(BEN, CLEO, run=NEXT, owner=OWNER), TRUST)
    assert said(ben, NEXT, CLEO) == {ms.BusyTold} | MEMBERS
    assert said(ben, OTHER, CLEO) == {ms.BusyTold}


def test_a_laptop_that_was_not_introduced_may_send_nothing(cleo: Introductions) -> None:
    lost = cleo.ended(FIRST, WENT_ON)
    assert not said(lost, FIRST, DeviceId("e" * 64))
    assert not said(lost, FIRST, ANNA), "the starter is paired, and asks elsewhere"
    assert not said(Introductions(CLEO), FIRST)


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(DORA, CLEO, run=NEXT, owner=OWNER),  # in another one's name
        plan_of(BEN, CLEO, run=NEXT),
        plan_of(BEN, CLEO, run=NEXT, owner=RunOwner(device=ANNA, run=OTHER)),
        plan_of(BEN, CLEO, run=NEXT, owner=RunOwner(device=BEN, run=FIRST)),
        plan_of(BEN, CLEO, run=NEXT, owner=OWNER, resumes=OTHER),
        plan_of(BEN, CLEO, DeviceId("e" * 64), run=NEXT, owner=OWNER),  # with one who was not in it
    ],
)
def test_invariant_nobody_is_invited_to_another_run(cleo: Introductions, plan: Plan) -> None:
    assert cleo.ended(FIRST, WENT_ON).received(BEN, prepare(plan)) is None


def test_a_new_name_or_seal_is_not_accepted(cleo: Introductions) -> None:
    assert cleo.received(BEN, ms.BusyTold(busy=True, name="anna")) is None
    assert cleo.received(BEN, ms.BusyTold(busy=True, seal="namespace")) is None
