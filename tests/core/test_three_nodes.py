"""Three whole nodes, trainers are stand-ins: the starter is paired with both others, which never paired."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from core.project.receipt import Receipt
from core.run.context import RunLimits
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder, trainer_messages
from core.vocabulary.answers import Done, RunAccepted
from core.vocabulary.commands import AnswerConsent, Forget, StartRun, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Training
from core.vocabulary.plan import Plan, RunSpec
from tests.core.nodes import LIMIT_S, Heard, id_of, linked, node, pair, wait_for
from tests.core.run.lan import keep, project
from tests.core.run.test_introductions import MEMBERS, STARTERS, message_of, prepare
from tests.core.test_two_nodes_run import Laptop, crash

pytestmark = pytest.mark.real


@contextlib.asynccontextmanager
async def three(base: Path) -> AsyncIterator[tuple[Laptop, Laptop, Laptop]]:
    anna, ben, cleo = them = Laptop(), Laptop(), Laptop()
    async with contextlib.AsyncExitStack() as stack:
        for laptop, name in zip(them, ("anna", "ben", "cleo"), strict=True):
            started = node(
                base,
                name,
                discovery=False,
                make_trainer=laptop.make_trainer,
                run_limits=RunLimits(look_s=LIMIT_S),
            )
            laptop.node = await stack.enter_async_context(started)
        await pair(anna.node, ben.node)
        await pair(anna.node, cleo.node)
        yield them


async def begin(starter: Laptop, *others: Laptop, spec: RunSpec) -> RunId:
    wanted = replace(spec, devices=tuple(id_of(other.node) for other in others))
    accepted = await starter.node.submit(StartRun(spec=wanted))
    assert isinstance(accepted, RunAccepted), accepted
    for other in others:
        await wait_for(other.node, lambda s: bool(s.consents))
        answer = AnswerConsent(run=accepted.run, decision="once")
        assert await other.node.submit(answer) == Done()
    await train(starter, *others)
    return accepted.run


async def train(*them: Laptop) -> None:
    for laptop in them:
        await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
        laptop.trainers[-1].meet()
        laptop.trainers[-1].make_step()
    for laptop in them:
        await wait_for(laptop.node, lambda s: s.run is not None and isinstance(s.run.phase, Training))


def plan_of(laptop: Laptop) -> Plan:
    assert laptop.node.state.run is not None
    return laptop.node.state.run.plan


async def lose_the_starter(anna: Laptop, *others: Laptop, run: RunId) -> None:
    """Each of the others has a checkpoint."""
    for other in others:
        keep(other.node.home.runs / run / run_folder.CHECKPOINTS, 40)
        other.trainers[-1].say(trainer_messages.Kept())
        other.started.clear()
    for other in others:
        await crash(anna, other)
        await wait_for(other.node, lambda s: not s.devices[id_of(anna.node)].linked)


async def test_members_that_never_paired_go_on_together_without_the_starter(tmp_path: Path) -> None:
    async with three(tmp_path) as (anna, ben, cleo):
        run = await begin(anna, ben, cleo, spec=project(tmp_path / "digits"))
        await linked(ben.node, cleo.node)
        assert not paired(ben, cleo) and not paired(cleo, ben)
        old, heard = plan_of(cleo), Heard(cleo.node)

        await lose_the_starter(anna, ben, cleo, run=run)
        await train(ben, cleo)

        plan = plan_of(cleo)
        assert plan.run == plan_of(ben).run != run and plan.starter == id_of(ben.node)
        assert plan.owner is not None and (plan.owner.device, plan.owner.run) == (id_of(anna.node), run)
        assert {member.device for member in plan.members} == {id_of(ben.node), id_of(cleo.node)}
        assert "ConsentAsked" not in heard.kinds() and not paired(cleo, ben)
        assert all(trainer.train.stands_in for trainer in ben.trainers[1:])

        await refuses_everything_else(ben, cleo, old)
        assert cleo.node._neighbours._name_for(id_of(ben.node), "anna") == id_of(ben.node)[:8]
        await gives_no_file(ben, cleo, old, tmp_path / "stolen")
        assert cleo.node.state.run is not None and isinstance(cleo.node.state.run.phase, Training)

        # Its user's own decision about the laptop that introduced them ends it at once.
        assert await cleo.node.submit(Forget(device=id_of(anna.node))) == Done()
        await wait_for(ben.node, lambda s: id_of(cleo.node) not in s.devices)
        await wait_for(cleo.node, lambda s: id_of(ben.node) not in s.devices)
        await ben.node.submit(StopRun())
        await wait_for(ben.node, lambda s: not s.busy)


async def refuses_everything_else(ben: Laptop, cleo: Laptop, old: Plan) -> None:
    """Whatever an introduced laptop sends beside its run has no effect."""
    me, device, heard = id_of(ben.node), id_of(cleo.node), Heard(cleo.node)
    kinds = set(get_args(ms.Message)) - {ms.Hello, ms.Bye, ms.BusyTold, ms.LoadAsked} - STARTERS
    other_run = prepare(replace(old, starter=me, run=RunId("20261128-120000-abcdef01")))
    for kind in sorted(kinds, key=lambda each: each.__name__):
        message = other_run if kind is ms.Prepare else message_of(kind, old.run)
        assert ben.node._neighbours.links.send(device, message), kind
    assert cleo.node.state.devices[me].busy
    assert ben.node._neighbours.links.send(device, ms.BusyTold(busy=False))  # links keep their order
    await wait_for(cleo.node, lambda s: not s.devices[me].busy)
    refused = {kind for sender, kind in cleo.node._neighbours.introduced._refused if sender == me}
    assert refused == kinds and kinds > MEMBERS - STARTERS
    beside = [event for event in heard.events if not isinstance(event, ev.MemberEvent)]  # its run goes on
    assert {type(event) for event in beside} <= {ev.BusyChanged, ev.TelemetryReported}
    told = {event.device for event in heard.events if isinstance(event, ev.TelemetryReported)}
    assert told <= {device}, "its own alone"


async def gives_no_file(ben: Laptop, cleo: Laptop, old: Plan, place: Path) -> None:
    manifest = cleo.node._runs._context.store.manifest(old.project)
    assert manifest is not None and manifest.files
    receipt = Receipt(manifest, place / "parts", place / "here")
    with pytest.raises(TandemError):
        await ben.node._neighbours.transfers.fetch(id_of(cleo.node), receipt, silent_s=1.0)
    assert not receipt.received_bytes


async def test_a_member_of_a_version_without_introductions_goes_on_alone(tmp_path: Path) -> None:
    async with three(tmp_path) as (anna, ben, cleo):
        cleo.node._neighbours.introduced.on_event = lambda event: None  # type: ignore[method-assign]
        run = await begin(anna, ben, cleo, spec=project(tmp_path / "digits"))

        await lose_the_starter(anna, ben, cleo, run=run)
        await train(ben, cleo)

        for laptop in (ben, cleo):
            plan = plan_of(laptop)
            assert plan.run != run and [member.device for member in plan.members] == [id_of(laptop.node)]
        for laptop in (ben, cleo):
            await laptop.node.submit(StopRun())
            await wait_for(laptop.node, lambda s: not s.busy)


def paired(here: Laptop, there: Laptop) -> bool:
    return here.node.state.devices[id_of(there.node)].paired
