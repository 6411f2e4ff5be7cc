"""Two laptops ask each other what they keep: links in memory, real disks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from core.home import trust
from core.home.certificate import device_id
from core.home.trust import TrustedPeer, TrustStore
from core.home.trust_file import SavedTrust
from core.project.store import ProjectStore
from core.run.keeping.driver import Keeping
from core.run.keeping.shelf import Shelf
from core.runtime.background import Background
from core.vocabulary import run_folder, wire
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.holdings import Kept
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.peer_messages import KeptAsked, KeptTold, Message, RemovalAsked
from core.vocabulary.phases import Training
from core.vocabulary.plan import Plan
from core.vocabulary.state import Consent, Device, Run, State
from core.vocabulary.versions import Versions, installed
from tests.core.certificates import device_certificate
from tests.core.samples import sample

CERTIFICATES = {name: device_certificate(number) for number, name in enumerate(("anna", "ben"), 61)}
ANNA, BEN = (device_id(der) for der in CERTIFICATES.values())
PROJECT, RUN = ProjectId("d" * 64), RunId("20261121-191204-9f3a01bc")


@dataclass
class Laptop:
    """``answers`` False: it hears and says nothing."""

    name: str
    device: DeviceId
    folder: Path
    answers: bool = True
    state: State = field(default_factory=State)
    notices: list[Problem] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    keeping: Keeping = field(init=False)
    trust: SavedTrust = field(init=False)

    def meet(self, other: Laptop, background: Background, versions: Versions | None = None) -> None:
        self.state = State(
            devices={
                other.device: Device(
                    device=other.device,
                    name=other.name,
                    paired=True,
                    linked=True,
                    versions=versions or installed(),
                )
            }
        )
        peer = TrustedPeer(cert_der=CERTIFICATES[other.name], name_at_pairing=other.name, paired_at=1.0)
        store = trust.add(TrustStore(self.device), peer)
        self.trust = SavedTrust(self.folder, store, lambda before, after: None)

        class Wire:
            def send(_, device: DeviceId, message: Message) -> bool:
                self.sent.append(message)
                linked = self.state.devices[device].linked
                if linked and other.answers:
                    asyncio.get_running_loop().call_soon(other.keeping.on_message, self.device, message)
                return linked

        self.keeping = Keeping(
            Shelf(ProjectStore(self.folder / "projects"), self.folder / "runs", self.device),
            self.trust,
            Wire(),
            background,
            state=lambda: self.state,
            notice=self.notices.append,
            answer_s=5.0 if other.answers else 0.05,
        )

    def ran(self, starter: DeviceId) -> Path:
        folder = self.folder / "runs" / RUN
        (folder / run_folder.OUTPUTS).mkdir(parents=True)
        (folder / run_folder.OUTPUTS / "model").write_bytes(bytes(1000))
        plan = replace(sample(Plan), run=RUN, starter=starter, project=PROJECT)
        (folder / run_folder.PLAN).write_bytes(wire.to_json(plan))
        return folder


@pytest.fixture
def anna(tmp_path: Path) -> Laptop:
    return Laptop("anna", ANNA, tmp_path / "anna")


@pytest.fixture
def ben(tmp_path: Path) -> Laptop:
    return Laptop("ben", BEN, tmp_path / "ben")


@pytest.fixture
async def background(anna: Laptop, ben: Laptop) -> AsyncIterator[Background]:
    background = Background()
    for here, there in ((anna, ben), (ben, anna)):
        here.folder.mkdir()
        here.meet(there, background)
    yield background
    await background.cancel()


@pytest.mark.usefixtures("background")
async def test_both_sides_see_what_is_kept_where(anna: Laptop, ben: Laptop) -> None:
    ben.ran(ANNA)
    annas, bens = await anna.keeping.list(BEN), await ben.keeping.list(ANNA)
    assert annas.there is not None and annas.there == bens.here and bens.here.bytes == 1000
    assert annas.here == bens.there == Kept()
    assert annas.problem is None and bens.problem is None


@pytest.mark.usefixtures("background")
@pytest.mark.parametrize("where", ["there", "here"])
async def test_either_side_can_remove_it(anna: Laptop, ben: Laptop, where: Literal["there", "here"]) -> None:
    folder = ben.ran(ANNA)
    await ben.trust.change(lambda store: trust.approve(store, ANNA, PROJECT))
    who, of = (anna, BEN) if where == "there" else (ben, ANNA)
    after = await who.keeping.remove(of, where, PROJECT)
    assert (after.there if where == "there" else after.here) == Kept()
    assert [path.name for path in folder.iterdir()] == [run_folder.PLAN]
    assert not trust.may_run(ben.trust.store, ANNA, PROJECT), "it would be asked about again"
    told = [notice.code for notice in ben.notices]
    assert told == (["kept-removed"] if where == "there" else [])
    assert not told or "anna" in ben.notices[0].what


@pytest.mark.usefixtures("background")
async def test_nobody_removes_what_is_not_its(anna: Laptop, ben: Laptop) -> None:
    folder = ben.ran(BEN)
    assert (await anna.keeping.remove(BEN, "there", None)).there == Kept()
    assert (folder / run_folder.OUTPUTS / "model").exists() and not ben.notices


@pytest.mark.usefixtures("background")
async def test_what_is_used_stays_until_the_run_is_over(anna: Laptop, ben: Laptop) -> None:
    folder = ben.ran(ANNA)
    plan = replace(sample(Plan), run=RUN, starter=ANNA)
    under_way = replace(ben.state, run=Run(plan=plan, phase=Training(), members={}))
    asked = replace(ben.state, consents=(replace(sample(Consent), device=ANNA),))
    for state in (under_way, asked):
        ben.state = state
        with pytest.raises(TandemError) as refusal:
            await anna.keeping.remove(BEN, "there", PROJECT)
        assert refusal.value.code == "kept-in-use"
        assert (folder / run_folder.OUTPUTS / "model").exists()


async def test_a_laptop_that_is_away_older_or_silent_is_said_and_nothing_waits(
    anna: Laptop, ben: Laptop, background: Background
) -> None:
    device = anna.state.devices[BEN]
    anna.ran(BEN)
    for found, code in (
        (replace(device, linked=False), "not-linked"),
        (replace(device, versions=replace(installed(), keeping=0)), "keeping-unknown"),
        (replace(device, paired=False), "not-paired"),
    ):
        anna.state, before = State(devices={BEN: found}), len(anna.sent)
        told = await anna.keeping.list(BEN)
        assert told.there is None and told.here.bytes == 1000
        assert told.problem is not None and told.problem.code == code and told.problem.fix
        assert code == "not-linked" or len(anna.sent) == before, "an older one would end the link"
    ben.answers = False
    anna.meet(ben, background)
    told = await anna.keeping.list(BEN)
    assert told.problem is not None and told.problem.code == "keeping-untold"
    with pytest.raises(TandemError) as slow:
        await anna.keeping.remove(BEN, "there", None)
    assert slow.value.code == "removal-untold" and "are removed" in slow.value.what


async def test_a_link_that_ends_is_waited_for_no_more(
    anna: Laptop, ben: Laptop, background: Background
) -> None:
    anna.meet(ben, background)
    ben.answers = False
    asking = asyncio.create_task(anna.keeping.list(BEN))
    while not anna.sent:  # noqa: ASYNC110  (no event tells of it)
        await asyncio.sleep(0)
    anna.keeping.on_link_down(BEN)
    told = await asking
    assert told.problem is not None and told.problem.code == "not-linked"


@pytest.mark.usefixtures("background")
async def test_answers_that_nobody_asked_for_and_questions_without_end_do_no_harm(
    anna: Laptop, ben: Laptop
) -> None:
    ben.ran(ANNA)
    lie = KeptTold(number=1, kept=Kept(bytes=7))
    assert anna.keeping.on_message(BEN, lie)
    for number in range(1000):
        assert ben.keeping.on_message(ANNA, KeptAsked(number=number))
        assert ben.keeping.on_message(ANNA, RemovalAsked(number=number, project=ProjectId("e" * 64)))
    while not ben.sent:  # noqa: ASYNC110  (no event tells of it)
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    assert [told.number for told in ben.sent if isinstance(told, KeptTold)] == [0]
    assert (await anna.keeping.list(BEN)).there is not None, "and it is asked again"
