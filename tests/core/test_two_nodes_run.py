"""Two whole nodes run a script together: real links and files; all trainers but one are stand-ins."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from core.link.dial import Backoff
from core.node.client import Client
from core.node.node import Node
from core.run.context import RunLimits
from core.vocabulary import events as ev
from core.vocabulary import run_folder, trainer_messages
from core.vocabulary.answers import Done, PlanMade, RequestRead, RunAccepted, RunDetails, RunList
from core.vocabulary.commands import (
    AnswerConsent,
    FindCheckpoints,
    Forget,
    GetRun,
    ListRuns,
    LookAtRequest,
    PlanRun,
    Quit,
    SetCodePolicy,
    StartRun,
    StopRun,
)
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed, Finished, Outcome, Stopped, Training
from core.vocabulary.plan import Moment, RunSpec
from core.vocabulary.progress import EpochEnd
from core.vocabulary.state import State
from tests.core import gnome
from tests.core.nodes import LIMIT_S, Heard, id_of, node, pair, refusal, wait_for
from tests.core.run.lan import FakeTrainer, keep, project
from tests.core.script.notebooks import notebook

pytestmark = pytest.mark.real


@dataclass
class Laptop:
    """A node and the stand-in trainers that it started."""

    trainers: list[FakeTrainer] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    node: Node = field(init=False)

    def make_trainer(self, train: trainer_messages.Train, **callbacks: object) -> FakeTrainer:
        trainer = FakeTrainer(train, **callbacks)  # type: ignore[arg-type]
        self.trainers.append(trainer)
        self.started.set()
        return trainer


@contextlib.asynccontextmanager
async def two(base: Path, names: tuple[str, str] = ("anna", "ben")) -> AsyncIterator[tuple[Laptop, Laptop]]:
    """Paired and linked; the first will be the starter."""
    anna, ben = Laptop(), Laptop()
    patient = RunLimits(look_s=LIMIT_S)
    first, second = names
    async with (
        node(base, first, discovery=False, make_trainer=anna.make_trainer, run_limits=patient) as anna.node,
        node(base, second, discovery=False, make_trainer=ben.make_trainer, run_limits=patient) as ben.node,
    ):
        await pair(anna.node, ben.node)
        yield anna, ben


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    return project(tmp_path / "somewhere" / "digits")


async def begin(anna: Laptop, ben: Laptop, spec: RunSpec, decision: str = "once") -> RunId:
    accepted = await anna.node.submit(StartRun(spec=spec))
    assert isinstance(accepted, RunAccepted), accepted
    asked = await wait_for(ben.node, lambda s: bool(s.consents))
    consent = asked.consents[0]
    assert anna.node.state.me is not None
    starter = anna.node.state.me.name
    assert (consent.run, consent.name, consent.script) == (accepted.run, starter, "train.py")
    assert {file.path for file in consent.files} == {"train.py", "data.csv"}
    assert await ben.node.submit(AnswerConsent(run=accepted.run, decision=decision)) == Done()  # type: ignore[arg-type]
    return accepted.run


async def train(anna: Laptop, ben: Laptop, spec: RunSpec) -> RunId:
    run = await begin(anna, ben, spec)
    for laptop in (anna, ben):
        await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
        laptop.trainers[-1].meet()
        laptop.trainers[-1].make_step()
    for laptop in (anna, ben):
        await wait_for(laptop.node, lambda s: s.run is not None and isinstance(s.run.phase, Training))
    return run


async def outcome(laptop: Laptop) -> Outcome:
    state = await wait_for(laptop.node, lambda s: s.run is not None and s.run.over)
    assert state.run is not None and isinstance(state.run.phase, Outcome)
    return state.run.phase


async def wait_free(*laptops: Laptop) -> None:
    for laptop in laptops:
        await wait_for(laptop.node, lambda s: not s.busy and not any(d.busy for d in s.devices.values()))


async def wait_tidy(*laptops: Laptop) -> None:
    """Waits until a run's leftovers are removed, including its empty folders."""
    await wait_free(*laptops)
    tidying = [task for task in asyncio.all_tasks() if task.get_name() == "tidy up after a run"]
    if tidying:
        await asyncio.wait(tidying)


async def test_both_are_kept_awake_while_they_train(tmp_path: Path, spec: RunSpec) -> None:
    with gnome.desktop() as desktop:
        async with two(tmp_path) as (anna, ben):
            await train(anna, ben, spec)
            await desktop.changes(2)
            assert len(desktop.held) == 2
            await anna.node.submit(StopRun())
            await wait_free(anna, ben)
            await desktop.changes(4)
            assert not desktop.held


async def test_both_screens_show_the_same_run_to_its_end(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path) as (anna, ben):
        planned = await anna.node.submit(PlanRun(spec=spec))
        assert isinstance(planned, PlanMade)
        assert len(planned.tf_configs) == 2

        run = await train(anna, ben, spec)
        await wait_for(anna.node, lambda s: s.devices[id_of(ben.node)].busy)
        for laptop in (anna, ben):
            laptop.trainers[-1].end()

        assert await outcome(anna) == Finished()
        assert await outcome(ben) == Finished()
        assert anna.node.state.run is not None and ben.node.state.run is not None
        assert anna.node.state.run.plan == ben.node.state.run.plan
        await wait_for(anna.node, lambda s: not s.devices[id_of(ben.node)].busy)
        for laptop in (anna, ben):
            details = await laptop.node.submit(GetRun(run=run))
            assert isinstance(details, RunDetails)
            assert details.entry.phase == Finished()
            assert set(details.steps) == {id_of(anna.node), id_of(ben.node)}
            listed = await laptop.node.submit(ListRuns())
            assert isinstance(listed, RunList) and [entry.run for entry in listed.runs] == [run]


async def test_a_checkpoint_that_only_the_other_laptop_has_is_found_and_its_way_here_is_reported(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path) as (anna, ben):
        run = await train(anna, ben, spec)
        assert refusal(await anna.node.submit(FindCheckpoints(run=run))) == "busy"
        assert await anna.node.submit(StopRun()) == Done()
        for laptop in (anna, ben):
            await outcome(laptop)
        await wait_tidy(anna, ben)
        heard = Heard(anna.node)
        assert await anna.node.submit(FindCheckpoints(run=run)) == Done()
        keep(ben.node.home.runs / run / run_folder.CHECKPOINTS, 40)
        assert await anna.node.submit(FindCheckpoints(run=run)) == Done()
        found = [event for event in heard.events if isinstance(event, ev.CheckpointFound)]
        moment = Moment(step=40, fit=1, epoch=2, batch=3)
        assert found == [ev.CheckpointFound(run=run, device=id_of(ben.node), moment=moment)]

        accepted = await anna.node.submit(StartRun(spec=replace(spec, resume=run)))
        assert isinstance(accepted, RunAccepted), accepted
        came = [event for event in heard.events if isinstance(event, ev.CheckpointCame)]
        assert (came[0].done, came[-1].done) == (0, came[-1].total)
        assert came[-1].total > 700_000 and came[-1].device == id_of(ben.node)
        assert refusal(await ben.node.submit(FindCheckpoints(run=RunId("none")))) == "run-unknown"


async def test_outputs_left_beside_a_script_are_no_reason_to_ask_again(tmp_path: Path) -> None:
    text = "import keras\nmodel = keras.Sequential()\nmodel.fit(1)\nmodel.save('digits.keras')\n"
    spec = project(tmp_path / "somewhere" / "digits", text)
    folder = Path(spec.script).parent
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)
        assert Path(anna.trainers[-1].train.folder) == folder, "it is there that the chief's script saves"
        (folder / "digits.keras").write_bytes(b"a model")
        heard = Heard(ben.node)
        for laptop in (anna, ben):
            laptop.started.clear()
            laptop.trainers[-1].end()
        await wait_free(anna, ben)

        assert isinstance(await anna.node.submit(StartRun(spec=spec)), RunAccepted)
        for laptop in (anna, ben):
            await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
            laptop.trainers[-1].end()
        assert "ConsentAsked" not in heard.kinds()
        await wait_free(anna, ben)

        # Data that the script reads is different: a consent is for those very bytes.
        (folder / "data.csv").write_text("3,4\n")
        assert isinstance(await anna.node.submit(StartRun(spec=spec)), RunAccepted)
        asked = await wait_for(ben.node, lambda s: bool(s.consents))
        assert asked.consents[0].changed
        assert {file.path for file in asked.consents[0].files} == {"train.py", "data.csv"}


async def test_stop_ends_it_on_both(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)

        assert await ben.node.submit(StopRun()) == Done()

        for laptop in (anna, ben):
            phase = await outcome(laptop)
            assert isinstance(phase, Stopped) and phase.by == "ben"
        assert refusal(await anna.node.submit(StopRun())) == "no-run"


async def goes_on_alone(anna: Laptop, code: str) -> None:
    """``code``: why the other one left."""

    def has_left(state: State) -> bool:
        others = state.run.members.values() if state.run is not None else ()
        return [member.left.code for member in others if member.left is not None] == [code]

    await wait_for(anna.node, has_left)
    assert anna.node.state.run is not None and isinstance(anna.node.state.run.phase, Training)
    anna.trainers[-1].end()
    assert isinstance(await outcome(anna), Finished)


async def test_the_other_node_goes_on_when_one_quits_in_training(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)

        assert await ben.node.submit(Quit()) == Done()

        await goes_on_alone(anna, "closed")
        assert all(trainer.over for trainer in ben.trainers)
        await asyncio.wait_for(ben.node.wait_stopped(), LIMIT_S)


async def test_a_laptop_whose_tandem_was_closed_is_back_once_it_is_open_again(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path) as (anna, ben):
        run = await train(anna, ben, spec)
        keep(anna.node.home.runs / run / run_folder.CHECKPOINTS, 40)
        anna.trainers[-1].say(trainer_messages.Kept())
        assert await ben.node.submit(Quit()) == Done()
        await asyncio.wait_for(ben.node.wait_stopped(), LIMIT_S)
        again = Laptop()
        async with node(tmp_path, "ben", discovery=False, make_trainer=again.make_trainer) as again.node:
            await asyncio.wait_for(again.started.wait(), LIMIT_S)
            state = await wait_for(again.node, lambda s: s.run is not None)
            assert state.run is not None and state.run.plan.resume is not None
            assert (state.run.plan.resume.run, state.run.plan.resume.back) == (run, ("ben",))
            assert await anna.node.submit(StopRun()) == Done()
            for laptop in (anna, again):
                assert isinstance(await outcome(laptop), Stopped)


async def test_a_starter_that_quits_in_training_ends_the_run(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)

        assert await anna.node.submit(Quit()) == Done()

        assert not isinstance(await outcome(ben), Finished)
        assert all(trainer.over for trainer in (*anna.trainers, *ben.trainers))
        await asyncio.wait_for(anna.node.wait_stopped(), LIMIT_S)


async def test_before_there_is_a_checkpoint_a_reboot_of_the_starters_laptop_ends_the_run(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)

        assert await anna.node.submit(Quit(leaves=True)) == Done()

        assert await outcome(ben) == Stopped(by="anna")
        assert all(trainer.over for trainer in (*anna.trainers, *ben.trainers))
        await asyncio.wait_for(anna.node.wait_stopped(), LIMIT_S)


async def reboot(laptop: Laptop, other: Laptop) -> None:
    """The system ends the node, in order."""
    assert await laptop.node.submit(Quit(leaves=True)) == Done()
    await asyncio.wait_for(laptop.node.wait_stopped(), LIMIT_S)
    assert all(trainer.over for trainer in laptop.trainers)


async def crash(laptop: Laptop, other: Laptop) -> None:
    """A node falls silent without a word."""
    peer = laptop.node._neighbours.links._peers[id_of(other.node)]
    await laptop.node._neighbours.listener.close()
    peer._addresses = list  # type: ignore[method-assign]  # it calls nobody any more
    assert peer.link is not None and peer.link._connection is not None
    peer.link._connection.abort()


@pytest.mark.parametrize(("lose", "kept_by_both"), [(crash, False), (reboot, True)])
async def test_a_lost_starter_takes_its_run_back_from_the_laptop_that_stood_in(
    tmp_path: Path, spec: RunSpec, lose: Callable[[Laptop, Laptop], Awaitable[None]], kept_by_both: bool
) -> None:
    """The one that crashed did so before its own first checkpoint."""
    async with two(tmp_path) as (anna, ben):
        run = await train(anna, ben, spec)
        for laptop in (anna, ben) if kept_by_both else (ben,):
            keep(laptop.node.home.runs / run / run_folder.CHECKPOINTS, 40)
            laptop.trainers[-1].say(trainer_messages.Kept())
        ben.started.clear()
        await lose(anna, ben)
        await asyncio.wait_for(ben.started.wait(), LIMIT_S)
        alone, again = ben.trainers[-1], Laptop()
        assert alone.train.stands_in and alone.train.walls is not None
        assert alone.train.resume and alone.train.run != run
        alone.meet()
        alone.make_step()
        await wait_for(ben.node, lambda s: s.run is not None and isinstance(s.run.phase, Training))
        keep(ben.node.home.runs / alone.train.run / run_folder.CHECKPOINTS, 50)

        old, name = anna.node.home.folder, "anna-again"
        left_out = shutil.ignore_patterns("*.sock", "*.lock")
        await asyncio.to_thread(shutil.copytree, old, tmp_path / name, ignore=left_out)
        async with node(tmp_path, name, discovery=False, make_trainer=again.make_trainer) as again.node:
            await asyncio.wait_for(again.started.wait(), LIMIT_S)
            await wait_for(ben.node, lambda s: s.run is not None and s.run.plan.starter == id_of(again.node))
            assert alone.over and again.trainers[-1].train.resume
            state = await wait_for(again.node, lambda s: s.run is not None)
            assert state.run is not None and state.run.plan.resume is not None
            assert (state.run.plan.resume.run, state.run.plan.resume.moment.step) == (run, 50)
            assert await again.node.submit(StopRun()) == Done()
            for laptop in (again, ben):
                assert isinstance(await outcome(laptop), Stopped)


async def test_forgetting_a_laptop_ends_its_part_in_the_run(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path) as (anna, ben):
        await train(anna, ben, spec)

        assert await anna.node.submit(Forget(device=id_of(ben.node))) == Done()

        assert isinstance(await outcome(ben), Failed)
        assert all(trainer.over for trainer in ben.trainers)
        await goes_on_alone(anna, "forgotten")


async def test_every_event_of_a_run_can_follow_and_travels_to_a_second_process(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path) as (anna, ben):
        client = await Client.connect(anna.node.home)
        heard: list[ev.Event] = []
        client.subscribe(lambda event, state: heard.append(event))
        await train(anna, ben, spec)
        for laptop in (anna, ben):
            laptop.trainers[-1].end()
        await outcome(anna)
        state = await wait_for(client, lambda s: s.run is not None and s.run.over)

        assert state.run == anna.node.state.run
        assert any(isinstance(event, ev.MemberProgressed) for event in heard)
        await client.close()
    log = (anna.node.home.logs / "tandem.log").read_text()
    assert "an event does not fit the state" not in log


LOOP = """
import json
import pathlib

import numpy as np
import psutil
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    weight = tf.Variable(0.0)
data = np.linspace(-1.0, 1.0, 64, dtype="float32")
dataset = tf.data.Dataset.from_tensor_slices((data, 3 * data)).batch(16)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.square(weight * x - y), global_batch_size=16)
    gradient = tape.gradient(loss, weight)
    gradient = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
    weight.assign_sub(0.5 * gradient)
    return loss


for epoch in range(5):
    for x, y in strategy.experimental_distribute_dataset(dataset):
        loss = strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)
print("weight", float(weight.numpy()), "of", strategy.num_replicas_in_sync, flush=True)

own = psutil.Process().net_connections("all")
listens = [list(each.laddr) for each in own if each.status == psutil.CONN_LISTEN]
end = [float(weight.numpy()), strategy.num_replicas_in_sync, listens]
pathlib.Path("end.json").write_text(json.dumps(end))
"""


@pytest.mark.cluster
async def test_two_nodes_are_the_replicas_of_a_scripts_own_mirrored_strategy(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere" / "project"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(LOOP)
    async with (
        node(tmp_path, "anna", discovery=False) as anna,
        node(tmp_path, "ben", discovery=False) as ben,
    ):
        await pair(anna, ben)
        assert await ben.submit(SetCodePolicy(device=id_of(anna), policy="always")) == Done()
        accepted = await anna.submit(StartRun(spec=RunSpec(script=str(folder / "train.py"), seed=3)))
        assert isinstance(accepted, RunAccepted), accepted
        state = await wait_for(anna, lambda s: s.run is not None and s.run.over, limit_s=240.0)
        assert state.run is not None and state.run.phase == Finished(), state.run
        assert (state.run.plan.strategy, state.run.plan.exchange) == ("own", "tls")
        summary = state.run.summary
        assert summary is not None
        assert (summary.strategy, summary.exchange) == ("MirroredStrategy", "tls")
        chief = state.run.plan.chief
    weight, replicas, listens = json.loads((folder / "end.json").read_text())
    assert weight == pytest.approx(expected_weight(), abs=2e-6) and replicas == 2
    assert listens == [[chief.host, chief.port]]


def expected_weight() -> float:
    """The result of the loop above on one machine."""
    data, weight = np.linspace(-1.0, 1.0, 64, dtype="float32"), 0.0
    for batch in [*np.split(data, 4)] * 5:
        weight -= 0.5 * float(np.mean(2 * batch * (weight * batch - 3 * batch)))
    return weight


async def test_a_notebook_is_shown_as_the_code_that_runs_and_travels_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere" / "notes"
    folder.mkdir(parents=True)
    text = notebook("#md Digits", "%matplotlib inline\nimport keras", "model.fit(x, y)", outputs=1000)
    (folder / "train.ipynb").write_text(text)
    async with two(tmp_path) as (anna, ben):
        told = Heard(anna.node)
        accepted = await anna.node.submit(StartRun(spec=RunSpec(script=str(folder / "train.ipynb"))))
        assert isinstance(accepted, RunAccepted), accepted
        consent = (await wait_for(ben.node, lambda s: bool(s.consents))).consents[0]
        assert consent.script == "train.ipynb"
        read = await ben.node.submit(LookAtRequest(run=accepted.run))
        assert isinstance(read, RequestRead)
        (file,) = read.files
        assert file.text == "# --- cell 1\npass\nimport keras\n\n# --- cell 2\nmodel.fit(x, y)"
        assert await ben.node.submit(AnswerConsent(run=accepted.run, decision="once")) == Done()
        for laptop in (anna, ben):
            await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
            assert laptop.trainers[-1].train.script == "train.ipynb"
            assert (laptop.trainers[-1].work / "train.ipynb").read_text() == text
        logged = "".join(event.lines.text for event in told.events if isinstance(event, ev.MemberLogged))
        assert "because it only works in Jupyter: %matplotlib inline (cell 1)" in logged


CUTS = 100


async def test_a_hundred_cuts_of_the_link_in_one_run_lose_and_repeat_no_event(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path) as (anna, ben):
        run = await train(anna, ben, spec)
        for here in (anna, ben):
            here.node._neighbours.links.backoff = Backoff(first_s=0.002, most_s=0.02)
        shown = {id_of(here.node): Heard(here.node) for here in (anna, ben)}
        cut: set[frozenset[tuple[str, int]]] = set()
        """Connections, by their two ends."""
        for number in range(CUTS):
            ended = EpochEnd(at_s=1.0, epoch=number, epochs=CUTS, step=1, logs={}, seconds=1.0)
            for here in (anna, ben):
                here.trainers[-1].say(trainer_messages.EpochEnded(epoch=ended))
            here, there = (anna, ben) if number % 2 else (ben, anna)
            link = here.node._neighbours.links._peers[id_of(there.node)].link
            assert link is not None
            async with asyncio.timeout(LIMIT_S):
                # One side may still consider alive what the other has cut. It is reported to nobody.
                while (connection := link._connection) is None or frozenset(link.ends) in cut:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            cut.add(frozenset(link.ends))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            connection.abort()
        for here in (anna, ben):
            here.trainers[-1].end()
        for here in (anna, ben):
            assert isinstance(await outcome(here), Finished)
        assert len(cut) == CUTS
        for heard in shown.values():
            epochs = [event for event in heard.events if isinstance(event, ev.MemberEndedEpoch)]
            for device in shown:
                told = [event.epoch.epoch for event in epochs if event.device == device]
                assert told == list(range(CUTS)), run
            assert not [event for event in heard.events if isinstance(event, ev.LinkDown)]
