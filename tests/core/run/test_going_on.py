"""Runs that go on with others, over links in memory: who has a checkpoint lends it, and all begin with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.cluster.plan import Moment, RunSpec
from core.errors import TandemError
from core.ids import RunId
from core.link import messages as ms
from core.run import checkpoints
from core.run.phases import Finished, Stopped, Training
from core.run.request import is_run_id
from tests.core.run.lan import Lan, LanNode, project

pytestmark = pytest.mark.real


@pytest.fixture
async def lan(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path) as lan:
        yield lan


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo")) as lan:
        yield lan


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    return project(tmp_path / "somewhere" / "digits")


def keep(folder: Path, step: int, data: bytes = b"w" * 700_000) -> None:
    """As a trainer does."""
    files = {"now.json": [b"{}"], "now.bin": [data], "fit-0.bin": [b""]}
    checkpoints.write(folder, Moment(step=step, fit=1, epoch=2, batch=3), (3, 1), files, {})


def kept(node: LanNode, run: RunId) -> Path:
    return node.home.runs / run / checkpoints.FOLDER


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


async def stopped(lan: Lan, spec: RunSpec, *names: str) -> RunId:
    """A run that trained and was stopped."""
    run = await launch(lan, spec, *names)
    for name in names:
        train = lan.nodes[name].trainers[-1].train
        assert Path(train.checkpoints) == kept(lan.nodes[name], run) and not train.resume
    await stop(lan, *names)
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
    details = await lan.nodes["Anna"].runs.get_run(again)
    assert details.entry.resumed == run
    assert details.checkpoint == Moment(step=40, fit=1, epoch=2, batch=3)


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


async def test_others_may_take_part_than_then(three: Lan, spec: RunSpec) -> None:
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


async def test_other_code_is_not_gone_on_with_and_other_data_is(lan: Lan, spec: RunSpec) -> None:
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


async def test_what_cannot_go_on_says_why(lan: Lan, spec: RunSpec) -> None:
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
    found = checkpoints.newest(kept(anna, run))
    assert found is not None
    asked = [ms.CheckpointAsked(run=run), ms.CheckpointAsked(run=RunId("../" + run))]
    for number, question in enumerate(asked, 1):
        cleo.send(anna.device, question)
        await three.wait_until(lambda number=number: len(heard) == number)
    cleo.send(anna.device, ms.CheckpointWanted(run=run, checkpoint=checkpoints.listing(found).digest))
    # What is asked while an answer is under way is left alone: ask until the next one comes.
    await three.wait_until(lambda: cleo.send(anna.device, asked[0]) and len(heard) > 2)
    assert heard[:2] == [ms.CheckpointTold(run=question.run) for question in asked]
    assert all(answer == ms.CheckpointTold(run=run) for answer in heard[2:])


def test_invariant_a_runs_id_that_leads_elsewhere_is_none() -> None:
    assert is_run_id("20260101-000000-0123abcd")
    assert not any(is_run_id(run) for run in ("", "..", "../x", "a/b", "/etc", "a\x00", "-x", "a" * 50))
