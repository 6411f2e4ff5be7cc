"""Runs that continue with other laptops, over links in memory: one with a checkpoint lends it, and all
begin with it."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project import checkpoint_store
from core.project.checkpoint_store import Exactness
from core.project.files import ReadMeter
from core.project.receipt import PIECE_BYTES, Receipt
from core.project.send import Extent
from core.run import problems, transfer, written
from core.run.context import RunLimits
from core.run.resume import plan as resume_plan
from core.run.resume.fetch import FoundCheckpoint
from core.run.runs import CLOSE_S
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import manifest_of
from core.vocabulary.phases import Finished, Stopped, Training
from core.vocabulary.plan import Moment, Plan, Role, RunSpec, shares_by_rank
from core.vocabulary.run_folder import PROJECT, is_run_id
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.project.making import write
from tests.core.run.lan import LOST, PATIENCE_S, Lan, LanNode, keep

HASTY = pytest.mark.parametrize("limits", [RunLimits(look_s=0.05)], ids=["hasty"])


@pytest.fixture
def limits() -> RunLimits:
    """The search for checkpoints waits for all answers, however slow the machine is."""
    return RunLimits(look_s=PATIENCE_S)


def kept(node: LanNode, run: RunId) -> Path:
    return node.home.runs / run / run_folder.CHECKPOINTS


async def launch(lan: Lan, spec: RunSpec, *names: str) -> RunId:
    nodes = [lan.nodes[name] for name in names]
    run = await nodes[0].runs.start(spec)
    await lan.wait_until(lambda: all(node.runs_a_trainer for node in nodes))
    for node in nodes:
        node.trainers[-1].meet()
        node.trainers[-1].make_step()
    await lan.wait_until(lambda: all(isinstance(node.phase, Training) for node in nodes))
    return run


async def stop(lan: Lan, *names: str) -> None:
    nodes = [lan.nodes[name] for name in names]
    nodes[0].runs.stop()
    await lan.wait_until(lambda: all(node.over for node in nodes))
    assert isinstance(nodes[0].phase, Stopped)
    # Empty checkpoint folders are removed.
    await lan.wait_until(
        lambda: "tidy up after a run" not in {task.get_name() for task in asyncio.all_tasks()}
    )


async def stopped(lan: Lan, spec: RunSpec, *names: str) -> RunId:
    """A run that trained and was stopped."""
    run = await launch(lan, spec, *names)
    for name in names:
        train = lan.nodes[name].trainers[-1].train
        assert Path(train.checkpoints) == kept(lan.nodes[name], run) and not train.resume
    await stop(lan, *names)
    return run


async def with_more_on_ben(lan: Lan, spec: RunSpec) -> RunId:
    """A run of which Ben's laptop has the newest checkpoint, and a log."""
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(anna, run), 40)
    keep(kept(ben, run), 60)
    work = write(ben.home.folder / "work", {"log.csv": "1"})
    written.keep(work, manifest_of("", ()), kept(ben, run).parent)
    return run


def content(folder: str | Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize("who", [("Anna", "Ben"), ("Anna",), ("Ben",)])
async def test_all_begin_with_the_checkpoint_whoever_had_it(
    lan: Lan, spec: RunSpec, who: tuple[str, ...]
) -> None:
    run = await stopped(lan, spec, "Anna", "Ben")
    for name in who:
        keep(kept(lan.nodes[name], run), 40)
    was = content(kept(lan.nodes[who[0]], run) / "00000001")
    again = await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert again != run
    for node in lan.nodes.values():
        train = node.trainers[-1].train
        assert Path(train.resume) == kept(node, again) / "00000001"
        assert content(train.resume) == was
        assert (train.seed, train.shares, train.rank) == (1, (3, 1), 0 if node.name == "Anna" else 1)
        plan = node.state.run.plan if node.state.run else None
        assert plan is not None and plan.resume is not None
        assert (plan.resume.run, plan.resume.moment.step) == (run, 40)
    await stop(lan, "Anna", "Ben")
    details = await lan.nodes["Anna"].runs.history.find(again)
    assert details.entry.resumed == run
    assert details.checkpoint == Moment(step=40, fit=1, epoch=2, batch=3)


async def test_a_resumed_run_remembers_how_rarely_members_met_even_if_it_makes_no_step(
    lan: Lan, spec: RunSpec
) -> None:
    anna = lan.nodes["Anna"]
    run = await stopped(lan, spec, "Anna", "Ben")
    files = {"now.json": [b"{}"], "now.bin": [b"w"]}
    rarely = Exactness(met_every=32, sent_bits=8)
    checkpoint_store.write(kept(anna, run), Moment(step=40), (3, 1), files, {}, exactness=rarely)
    again = await anna.runs.start(replace(spec, resume=run, solo=True))
    await lan.wait_until(lambda: anna.runs_a_trainer)
    anna.trainers[-1].meet()
    anna.trainers[-1].end()
    await lan.wait_until(lambda: anna.over)
    summary = (await anna.runs.history.find(again)).entry.summary
    assert (summary.met_every, summary.sent_bits) == (32, 8)


async def test_a_laptop_that_reads_its_own_checkpoint_says_so(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "ReadMeter", partial(ReadMeter, every_s=0))
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    for node in (anna, ben):
        keep(kept(node, run), 40)
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    phases = (event for event in anna.events if isinstance(event, ev.MemberPhaseChanged))
    told = [event for event in phases if (event.device, event.words) == (ben.device, "checking files")]
    assert told and told[-1].done == told[-1].total > 0


async def test_the_newest_counts_and_a_damaged_one_does_not(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(anna, run), 40)
    keep(kept(ben, run), 60)
    keep(kept(ben, run), 80)
    (kept(ben, run) / "00000002" / "now.bin").write_bytes(b"x" * 700_000)
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert anna.state.run is not None and anna.state.run.plan.resume is not None
    assert anna.state.run.plan.resume.moment.step == 60
    assert "step 80 on Ben cannot be used" in remarks(anna)


def remarks(node: LanNode) -> str:
    """Tandem's own messages in this run's output."""
    said = [event.lines for event in node.events if isinstance(event, ev.MemberLogged)]
    return "\n".join(lines.text for lines in said if lines.stream == "tandem")


async def test_a_damaged_newest_one_here_gives_way_to_the_next(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    for step in (60, 80):
        keep(kept(anna, run), step)
    (kept(anna, run) / "00000002" / "now.bin").write_bytes(b"x" * 700_000)
    lan.cut(anna, ben)
    await launch(lan, replace(spec, resume=run, solo=True), "Anna")
    assert content(anna.trainers[-1].train.resume) == content(kept(anna, run) / "00000001")
    said = remarks(anna)
    assert "Ben could not be asked" in said and "step 80 on this laptop cannot be used" in said
    assert "Going on with the checkpoint of step 60 on this laptop." in said


@pytest.mark.parametrize(
    ("how", "limits"),
    [
        pytest.param(how, RunLimits(first_piece_s=first_piece_s), id=how)
        for how, first_piece_s in {
            **dict.fromkeys(["never", "gone"], 0.5),
            **dict.fromkeys(["other bytes", "another moment", "unreadable"], PATIENCE_S),
        }.items()
    ],
)
async def test_a_newer_one_that_differs_from_its_announcement_gives_way_to_the_one_here(
    lan: Lan, spec: RunSpec, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(anna, run), 40)
    keep(kept(ben, run), 60)
    whole, block, asked = ben.send, ben.files.block, list[object]()

    async def send_block(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        asked.append(extents)
        if how == "gone":
            lan.cut(anna, ben)
        if how in ("gone", "never"):
            await asyncio.Event().wait()
        if how == "unreadable":
            raise TandemError(code="project-changed", what="It changed.")
        data = await block(device, digest, extents)
        return b"x" * len(data) if how == "other bytes" else data

    def send(device: DeviceId, message: ms.Message) -> bool:
        if isinstance(message, ms.CheckpointTold) and message.kept and how == "another moment":
            later = replace(message.kept.moment, step=1 << 40)
            message = replace(message, kept=replace(message.kept, moment=later))
            asked.append(message)
        return whole(device, message)

    monkeypatch.setattr(ben, "send", send)
    monkeypatch.setattr(ben.files, "block", send_block)
    await launch(lan, replace(spec, resume=run, solo=True), "Anna")
    assert asked
    assert content(anna.trainers[-1].train.resume) == content(kept(anna, run) / "00000001")
    assert "on Ben cannot be used" in remarks(anna) and "step 40 on this laptop" in remarks(anna)
    assert {path.name for path in kept(anna, run).iterdir()} == {"00000001"}


@pytest.mark.parametrize(
    ("how", "limits"),
    [
        pytest.param(how, RunLimits(first_piece_s=first_piece_s), id=how)
        for how, first_piece_s in {"never": 0.5, "gone": PATIENCE_S, "disk": PATIENCE_S}.items()
    ],
)
async def test_the_newest_counts_even_if_what_the_script_wrote_does_not_come_with_it(
    lan: Lan, spec: RunSpec, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await with_more_on_ben(lan, spec)
    wrote = written.find(kept(ben, run).parent)
    assert wrote is not None
    block, finish, failed = ben.files.block, Receipt.finish, list[str]()

    async def send_block(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        if digest == wrote.files.digest and how != "disk":
            failed.append(how)
            if how == "never":
                await asyncio.Event().wait()
            lan.lose(anna, ben, LOST)
        return await block(device, digest, extents)

    def finished(receipt: Receipt) -> Path:
        if receipt.manifest.digest == wrote.files.digest and how == "disk":
            failed.append(how)
            raise TandemError(code="disk-full", what="The disk is full.")
        return finish(receipt)

    monkeypatch.setattr(ben.files, "block", send_block)
    monkeypatch.setattr(Receipt, "finish", finished)
    await launch(lan, replace(spec, resume=run, solo=True), "Anna")
    assert failed == [how]
    assert content(anna.trainers[-1].train.resume) == content(kept(ben, run) / "00000001")
    assert "cannot be used" not in remarks(anna)
    assert "The files that the script wrote on Ben did not come" in remarks(anna)


async def test_what_came_with_a_checkpoint_is_there_for_the_next_try_as_well(lan: Lan, spec: RunSpec) -> None:
    """The first try makes no step, and the checkpoint that it fetched is here by then."""
    anna = lan.nodes["Anna"]
    run = await with_more_on_ben(lan, spec)
    for _ in range(2):
        await anna.runs.start(replace(spec, resume=run, solo=True))
        await lan.wait_until(lambda: anna.runs_a_trainer)
        wrote = Path(anna.trainers[-1].train.folder) / "log.csv"
        assert wrote.read_text() == "1"
        await stop(lan, "Anna")
        wrote.unlink()


async def test_stop_ends_the_fetching_and_the_next_try_is_answered(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    sent: list[object] = []
    block, more = ben.files.block, asyncio.Event()

    async def slowly(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        sent.append(extents)
        await more.wait()
        return await block(device, digest, extents)

    monkeypatch.setattr(ben.files, "block", slowly)
    starting = asyncio.ensure_future(anna.runs.start(replace(spec, resume=run)))
    await lan.wait_until(lambda: sent)
    anna.runs.stop()
    with pytest.raises(TandemError) as refused:
        await starting
    assert refused.value.problem == problems.stopped_by("Anna") and not anna.runs.busy
    assert anna.events[-1] == ev.FetchEnded(run=run)
    more.set()
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert content(anna.trainers[-1].train.resume) == content(kept(ben, run) / "00000001")


async def test_bytes_fetched_before_a_stop_are_not_fetched_again(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    weights = [bytes([number]) * PIECE_BYTES for number in range(3)]
    made = checkpoint_store.write(kept(ben, run), moment_of(40), (3, 1), {"now.bin": weights}, {})
    sent: list[Extent] = []
    block, waits = ben.files.block, True

    async def two_blocks(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        if waits and sum(extent.length for extent in sent) >= 2 * PIECE_BYTES:
            await asyncio.Event().wait()
        sent.extend(extents)
        return await block(device, digest, extents)

    monkeypatch.setattr(ben.files, "block", two_blocks)
    starting = asyncio.ensure_future(anna.runs.start(replace(spec, resume=run)))
    await lan.wait_until(lambda: anna.files.received_bytes >= 2 * PIECE_BYTES)
    anna.runs.stop()
    with pytest.raises(TandemError):
        await starting
    waits = False
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert_fetched_at_once(lan, run)
    assert sum(extent.length for extent in sent) == sum(map(len, content(made.folder).values()))


async def test_closing_ends_the_fetching(lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    wanted: list[ms.Message] = []
    monkeypatch.setattr(ben.runs, "on_message", lambda device, message: wanted.append(message))
    starting = asyncio.ensure_future(anna.runs.start(replace(spec, resume=run)))
    await lan.wait_until(lambda: wanted)
    began_s = asyncio.get_running_loop().time()
    await anna.runs.close()
    assert asyncio.get_running_loop().time() - began_s < CLOSE_S, "no unanswered question is waited for"
    del lan.nodes["Anna"]  # closed already
    with pytest.raises(TandemError):
        await starting


def assert_fetched_at_once(lan: Lan, run: RunId) -> None:
    """Anna continues with the checkpoint on Ben's laptop, complete and at the first attempt."""
    anna, ben = lan.nodes.values()
    assert content(anna.trainers[-1].train.resume) == content(kept(ben, run) / "00000001")
    assert "cannot be used" not in remarks(anna)


async def look(node: LanNode, run: RunId) -> list[ev.CheckpointFound]:
    """Checkpoints found until the command was answered."""
    before = len(node.events)
    await node.runs.find_checkpoints(run)
    return [event for event in node.events[before:] if isinstance(event, ev.CheckpointFound)]


def moment_of(step: int) -> Moment:
    return Moment(step=step, fit=1, epoch=2, batch=3)


async def test_others_checkpoints_are_found_if_they_are_newer_than_ours(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = three.nodes.values()
    run = await stopped(three, spec, "Anna", "Ben", "Cleo")
    assert await look(anna, run) == []
    keep(kept(ben, run), 40)
    assert await look(anna, run) == [ev.CheckpointFound(run=run, device=ben.device, moment=moment_of(40))]
    keep(kept(cleo, run), 60)
    found = await look(anna, run)
    assert found[-1] == ev.CheckpointFound(run=run, device=cleo.device, moment=moment_of(60))
    keep(kept(anna, run), 40)
    assert [event.device for event in await look(anna, run)] == [cleo.device]
    keep(kept(anna, run), 60)
    assert await look(anna, run) == [], "ours need not travel"


class Withheld:
    """A laptop's checkpoint reports, held back."""

    def __init__(self, node: LanNode, monkeypatch: pytest.MonkeyPatch) -> None:
        self._node = node
        self._send = node.send
        self.answers: list[tuple[DeviceId, ms.Message]] = []
        monkeypatch.setattr(node, "send", self._hold)

    def _hold(self, device: DeviceId, message: ms.Message) -> bool:
        if isinstance(message, ms.CheckpointTold):
            self.answers.append((device, message))
            return True
        return self._send(device, message)

    def tell(self) -> None:
        for answer in self.answers:
            self._send(*answer)
        self.answers.clear()


async def look_in_vain(lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch) -> tuple[RunId, Withheld]:
    """Anna looks for Ben's checkpoints, and his answer does not come while she waits."""
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    withheld = Withheld(ben, monkeypatch)
    assert await look(anna, run) == []
    assert not anna.runs._context.background, "the node's end does not wait for its answer"
    await lan.wait_until(lambda: withheld.answers)
    return run, withheld


@HASTY
async def test_nobody_waits_for_a_silent_laptop_and_its_late_answer_counts(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run, withheld = await look_in_vain(lan, spec, monkeypatch)
    withheld.tell()
    found = ev.CheckpointFound(run=run, device=ben.device, moment=moment_of(40))
    await lan.wait_until(lambda: found in anna.events)


@HASTY
async def test_a_late_answer_does_not_disturb_the_fetching(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ben = lan.nodes.values()
    run, withheld = await look_in_vain(lan, spec, monkeypatch)
    late = withheld.answers[-1]
    monkeypatch.undo()
    block = ben.files.block

    async def after_the_answer(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        ben.send(*late)
        return await block(device, digest, extents)

    monkeypatch.setattr(ben.files, "block", after_the_answer)
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert_fetched_at_once(lan, run)


async def test_looking_does_not_disturb_the_fetching(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    block = ben.files.block
    looked: list[list[ev.CheckpointFound]] = []

    async def while_it_comes(device: DeviceId, digest: ProjectId, extents: tuple[Extent, ...]) -> bytes:
        looked.append(await look(anna, run))
        return await block(device, digest, extents)

    monkeypatch.setattr(ben.files, "block", while_it_comes)
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert looked and not any(looked)
    assert_fetched_at_once(lan, run)


async def test_how_much_of_the_checkpoint_has_come_is_reported(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    came = [event for event in anna.events if isinstance(event, ev.CheckpointCame)]
    newest = checkpoint_store.newest(kept(ben, run))
    assert newest is not None
    whole = checkpoint_store.listing(newest).total_bytes
    assert {(event.run, event.device, event.total) for event in came} == {(run, ben.device, whole)}
    done = [event.done for event in came]
    assert done == sorted(done) and (done[0], done[-1]) == (0, whole)
    after = anna.events[anna.events.index(came[-1]) :]
    assert after[1] == ev.FetchEnded(run=run) and any(isinstance(event, ev.RunPlanned) for event in after)
    assert anna.state.fetch is None


@pytest.mark.parametrize(
    "moment",
    [Moment(step=-1), Moment(step=5, epoch=1 << 62), Moment(step=5, batch=-1), Moment(step=5, fit=1 << 62)],
)
async def test_invariant_an_impossible_moment_is_as_good_as_none(
    lan: Lan, spec: RunSpec, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(ben, run), 40)
    whole, sent = ben.send, list[ms.Message]()

    def send(device: DeviceId, message: ms.Message) -> bool:
        if isinstance(message, ms.CheckpointTold) and message.kept:
            message = replace(message, kept=replace(message.kept, moment=moment))
            sent.append(message)
        return whole(device, message)

    monkeypatch.setattr(ben, "send", send)
    assert await look(anna, run) == []
    assert await refusal(anna, replace(spec, resume=run)) == "no-checkpoint"
    assert len(sent) == 2


async def test_invariant_answers_of_laptops_that_were_not_asked_are_ignored(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = three.nodes.values()
    run = await stopped(three, replace(spec, devices=(ben.device,)), "Anna", "Ben")
    keep(kept(ben, run), 40)
    newest = checkpoint_store.newest(kept(ben, run))
    assert newest is not None
    copy = ms.KeptCheckpoint(moment=moment_of(80), files=checkpoint_store.listing(newest))
    told = ms.CheckpointTold(run=run, kept=copy)
    heard: list[ms.Message] = []
    on_message = anna.runs.on_message

    def hear(device: DeviceId, message: ms.Message) -> None:
        on_message(device, message)
        heard.append(message)

    anna.runs.on_message = hear  # type: ignore[method-assign]
    cleo.send(anna.device, told)
    found = await look(anna, run)
    cleo.send(anna.device, told)
    ben.send(anna.device, told)
    await three.wait_until(lambda: heard.count(told) == 3)
    assert [event.device for event in found] == [ben.device]
    assert sum(isinstance(event, ev.CheckpointFound) for event in anna.events) == 1


async def test_other_laptops_may_take_part_than_before(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = three.nodes.values()
    then = replace(spec, devices=(ben.device,))
    run = await stopped(three, then, "Anna", "Ben")
    keep(kept(ben, run), 40)
    await launch(three, replace(spec, resume=run, devices=(cleo.device,)), "Anna", "Cleo")
    assert content(cleo.trainers[-1].train.resume) == content(kept(ben, run) / "00000001")
    assert cleo.trainers[-1].train.shares == (1, 1)
    await stop(three, "Anna", "Cleo")
    await launch(three, replace(spec, resume=run, solo=True), "Anna")
    assert anna.trainers[-1].train.resume


async def refusal(node: LanNode, spec: RunSpec) -> str:
    with pytest.raises(TandemError) as refused:
        await node.runs.start(spec)
    assert not node.runs.busy
    return refused.value.problem.code


async def test_without_a_checkpoint_nothing_begins(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes.values()
    run = await stopped(lan, spec, "Anna", "Ben")
    assert await refusal(anna, replace(spec, resume=run)) == "no-checkpoint"
    keep(kept(ben, run), 40)
    lan.cut(anna, ben)
    with pytest.raises(TandemError, match="Ben could not be asked"):
        await anna.runs.start(replace(spec, resume=run, solo=True))


async def test_changed_code_is_not_resumed_and_changed_data_is(lan: Lan, spec: RunSpec) -> None:
    anna = lan.nodes["Anna"]
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(anna, run), 40)
    script = Path(spec.script)
    before = script.read_text()
    script.write_text(before + "print('changed')\n")
    assert await refusal(anna, replace(spec, resume=run)) == "script-changed"
    script.write_text(before)
    (script.parent / "log.csv").write_text("epoch,loss\n")
    (script.parent / "data.csv").write_text("3,4\n")
    await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert "Make sure that the script is the same" not in remarks(anna)


async def test_code_that_cannot_be_compared_is_reported(lan: Lan, spec: RunSpec) -> None:
    anna = lan.nodes["Anna"]
    run = await stopped(lan, spec, "Anna", "Ben")
    keep(kept(anna, run), 40)
    (anna.home.runs / run / PROJECT).unlink()
    again = await launch(lan, replace(spec, resume=run), "Anna", "Ben")
    assert "Make sure that the script is the same" not in remarks(anna)  # Nothing changed at all.
    await stop(lan, "Anna", "Ben")
    keep(kept(anna, again), 60)
    (anna.home.runs / again / PROJECT).unlink()
    script = Path(spec.script)
    script.write_text(script.read_text() + "# changed\n")
    await launch(lan, replace(spec, resume=again), "Anna", "Ben")
    assert "Make sure that the script is the same" in remarks(anna)


def continued(old: Plan, shares: tuple[int, ...], spec: RunSpec | None = None) -> tuple[int, ...]:
    """The shares with which ``old`` goes on from a checkpoint that names these."""
    spec = spec or RunSpec(script="train.py", seed=1)
    found = FoundCheckpoint(
        run=old.run, moment=Moment(), shares=shares, files=manifest_of("", ()), device=None
    )
    new = replace(plan_of(tuple(member.device for member in old.members)), run=RunId("again"))
    return shares_by_rank(resume_plan.continued(new, spec, old, found))


def test_shares_that_followed_speeds_are_gone_on_with_and_nobody_begins_with_none() -> None:
    old = plan_of((ANNA, BEN, CLEO))
    assert old.balance
    assert continued(old, (20, 14, 30)) == (20, 14, 30)
    for of_the_lost in ((64, 0, 0), (20, 0, 44), (0, 0, 0)):
        assert continued(old, of_the_lost) == (1, 1, 1), "their speeds are measured again"
    assert continued(old, (64, 0)) == continued(old, (1, 1, 1 << 31)) == (1, 1, 1)


def test_shares_that_the_user_fixed_are_gone_on_with_whoever_was_lost() -> None:
    members = plan_of((ANNA, BEN, CLEO)).members
    fixed = tuple(replace(member, share=share) for member, share in zip(members, (3, 5, 0), strict=True))
    old = replace(plan_of((ANNA, BEN, CLEO)), members=fixed, balance=False)
    for shares in ((3, 5, 0), (3, 0, 0), (0, 1, 0)):
        assert continued(old, shares) == (3, 5, 0)


def test_a_laptop_of_several_cards_begins_with_the_sum_of_their_shares() -> None:
    spec = RunSpec(script="train.py", seed=1)
    old = plan_of(fixed={ANNA: (Role.CHIEF, Role.WORKER), BEN: (Role.WORKER,)})
    files = manifest_of("", ())
    found = FoundCheckpoint(run=old.run, moment=Moment(), shares=(6, 6, 4), files=files, device=None)
    plan = resume_plan.continued(replace(old, run=RunId("again")), spec, old, found)
    assert [member.share for member in plan.members] == [12, 4]
    assert shares_by_rank(plan) == (6, 6, 4)


async def test_a_run_that_cannot_be_resumed_says_why(lan: Lan, spec: RunSpec) -> None:
    anna = lan.nodes["Anna"]
    assert await refusal(anna, replace(spec, resume=RunId("none"))) == "run-unknown"
    own = await launch(lan, replace(spec, strategy="own"), "Anna", "Ben")
    assert anna.trainers[-1].train.checkpoints == ""
    await stop(lan, "Anna", "Ben")
    assert await refusal(anna, replace(spec, resume=own)) == "not-resumable"
    run = await launch(lan, spec, "Anna", "Ben")
    for node in lan.nodes.values():
        node.trainers[-1].end()
    await lan.wait_until(lambda: all(node.over for node in lan.nodes.values()))
    assert isinstance(anna.phase, Finished)
    assert await refusal(anna, replace(spec, resume=run)) == "run-finished"


async def test_invariant_a_laptop_that_was_not_in_a_run_learns_nothing_of_its_checkpoints(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = three.nodes.values()
    run = await stopped(three, replace(spec, devices=(ben.device,)), "Anna", "Ben")
    keep(kept(anna, run), 40)
    heard: list[ms.Message] = []
    cleo.runs.on_message = lambda device, message: heard.append(message)  # type: ignore[method-assign]
    found = checkpoint_store.newest(kept(anna, run))
    assert found is not None
    asked = [ms.CheckpointAsked(run=run), ms.CheckpointAsked(run=RunId("../" + run))]
    for number, question in enumerate(asked, 1):
        cleo.send(anna.device, question)

        def have_come(number: int = number) -> bool:
            return len(heard) == number

        await three.wait_until(have_come)
    cleo.send(anna.device, ms.CheckpointWanted(run=run, checkpoint=checkpoint_store.listing(found).digest))
    # A request during an answer is ignored: repeat it until the next one comes.
    await three.wait_until(lambda: cleo.send(anna.device, asked[0]) and len(heard) > 2)
    assert heard[:2] == [ms.CheckpointTold(run=question.run) for question in asked]
    assert all(answer == ms.CheckpointTold(run=run) for answer in heard[2:])


def test_invariant_a_run_id_that_leads_elsewhere_is_none() -> None:
    assert is_run_id("20260101-000000-0123abcd")
    assert not any(is_run_id(run) for run in ("", "..", "../x", "a/b", "/etc", "a\x00", "-x", "a" * 50))
