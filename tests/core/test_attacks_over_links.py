"""A malicious paired laptop, over a real link to a whole node: it sends whatever a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from core.cluster.make_plan import make_plan, new_run_id
from core.node.node import Node
from core.project import checkpoint_store
from core.project.send import ManifestReader
from core.transfer.offer import OfferedFiles
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.answers import Done, RunAccepted
from core.vocabulary.commands import AnswerConsent, FindCheckpoints, StartRun, StopRun
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.plan import Moment, Plan, Role, RunSpec
from core.vocabulary.traffic import run_of
from tests.core.nodes import LIMIT_S, Heard, id_of, refusal, wait_for
from tests.core.project.making import manifest_for
from tests.core.run.lan import keep, project
from tests.core.test_two_nodes_run import outcome, train, two, wait_tidy

pytestmark = pytest.mark.real

M = TypeVar("M", bound=ms.Message)
HARMLESS_FILE, EVIL_FILE = b"print('hello')", b"import os; os.system('evil')"
HARMLESS, EVIL = (manifest_for({"train.py": data}) for data in (HARMLESS_FILE, EVIL_FILE))
OVER = Problem(code="over", what="It is over.")


class Hostile:
    """``on_heard``: its answer to a message."""

    def __init__(self, node: Node, other: Node) -> None:
        self.node, self.other = node, other
        self.heard: list[ms.Message] = []
        self.on_heard: Callable[[ms.Message], None] = lambda message: None
        self._news = asyncio.Event()
        node._neighbours._on_message = lambda _, message: self._hear(message)

    def _hear(self, message: ms.Message) -> None:
        self.heard.append(message)
        self._news.set()
        self.on_heard(message)

    def say(self, *messages: ms.Message) -> None:
        for message in messages:
            assert self.node._neighbours.links.send(id_of(self.other), message)

    def offers(self, manifest: Manifest, data: bytes) -> None:
        """Every request to it is answered with these bytes."""
        lane, offer = (
            self.node._neighbours.transfers._lane(id_of(self.other)),
            OfferedFiles(ManifestReader(Path(), manifest)),
        )
        assert lane is not None
        offer.read = lambda extents: data[: sum(each.length for each in extents)]  # type: ignore[method-assign]
        lane.offer(offer)

    async def hears(self, kind: type[M], run: RunId) -> M:
        async with asyncio.timeout(LIMIT_S):
            while True:
                for message in self.heard:
                    if isinstance(message, kind) and run_of(message) == run:
                        return message
                self._news.clear()
                await self._news.wait()

    def plan(self, manifest: Manifest, run: RunId | None = None) -> Plan:
        devices = (id_of(self.node), id_of(self.other))
        plan = make_plan(
            RunSpec(script="train.py"),
            starter=devices[0],
            project=manifest.digest,
            script="train.py",
            strategy="managed",
            roles={devices[0]: (Role.CHIEF,), devices[1]: (Role.WORKER,)},
            names=dict.fromkeys(devices, "laptop"),
            hosts=dict.fromkeys(devices, "127.0.0.1"),
        )
        return replace(plan, run=run or new_run_id())

    def asks(self, manifest: Manifest, run: RunId | None = None) -> Plan:
        plan = self.plan(manifest, run)
        self.say(ms.Prepare(plan=plan, manifest=manifest))
        return plan


def below(folder: Path) -> set[Path]:
    """Every file and folder; tolerates a node tidying up."""
    return {Path(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files)}


def received(node: Node) -> bytes:
    """Contents of every file here that came from others, complete or partial."""
    found = b""
    for path in below(node.home.projects) | below(node.home.runs):
        if path.suffix not in (".json", ".jsonl", ".sqlite", ".html"):
            with contextlib.suppress(OSError):
                found += path.read_bytes()
    return found


# --- live races for this user's yes ------------------------------------------------------------------------


async def test_files_and_launches_before_the_answer_are_neither_kept_nor_run(tmp_path: Path) -> None:
    async with two(tmp_path) as (mallory, ben):
        hostile = Hostile(mallory.node, ben.node)
        plan = hostile.asks(EVIL)
        hostile.offers(EVIL, EVIL_FILE)
        # Sent immediately, before the question can have been read.
        hostile.say(ms.Launch(plan=plan))
        await wait_for(ben.node, lambda s: bool(s.consents))
        hostile.say(ms.Launch(plan=plan), ms.OutputsReceived(run=plan.run))
        assert await ben.node.submit(AnswerConsent(run=plan.run, decision="no")) == Done()
        await hostile.hears(ms.Declined, plan.run)
        hostile.say(ms.Launch(plan=plan))
        later = hostile.asks(HARMLESS)  # arrives after all of that: links keep their order
        await wait_for(ben.node, lambda s: any(each.run == later.run for each in s.consents))
        assert not ben.trainers and EVIL_FILE not in received(ben.node)


async def test_the_subject_of_a_question_cannot_be_replaced_while_it_is_read(tmp_path: Path) -> None:
    async with two(tmp_path) as (mallory, ben):
        hostile = Hostile(mallory.node, ben.node)
        plan = hostile.asks(HARMLESS)
        await wait_for(ben.node, lambda s: bool(s.consents))
        hostile.say(ms.RunAbandoned(run=plan.run, problem=OVER))
        hostile.asks(EVIL, plan.run)
        declined = await hostile.hears(ms.Declined, plan.run)
        assert declined.problem.code == "run-known"
        answer = await ben.node.submit(AnswerConsent(run=plan.run, decision="once"))
        assert refusal(answer) == "no-such-question"
        assert not ben.node.state.consents and not ben.trainers


async def test_an_answer_that_crosses_a_replaced_request_allows_only_what_was_shown(
    tmp_path: Path,
) -> None:
    """Repeated, since it depends on which comes first; the other laptop's messages come over a socket."""
    async with two(tmp_path) as (mallory, ben):
        hostile = Hostile(mallory.node, ben.node)
        allowed, evil = 0, []
        for number in range(24):
            ben.node._runs._admission._pauses.clear()  # otherwise three noes end the trial
            shown = manifest_for({"train.py": HARMLESS_FILE + b"#" * number})
            plan = hostile.asks(shown)
            await wait_for(ben.node, lambda s, run=plan.run: any(each.run == run for each in s.consents))  # type: ignore[misc]
            answering = asyncio.create_task(ben.node.submit(AnswerConsent(run=plan.run, decision="once")))
            if number >= 20:
                await answering
            await asyncio.sleep(0.001 * number)
            hostile.say(ms.RunAbandoned(run=plan.run, problem=OVER))
            evil += [hostile.asks(EVIL, plan.run), hostile.asks(EVIL)]
            allowed += await answering == Done()
            # Its replacement may be the next question: it gets its own no.
            hostile.say(ms.RunAbandoned(run=evil[-1].run, problem=OVER))
            await hostile.hears(ms.Declined, plan.run)
            for each in ben.node.state.consents:
                assert each.run != plan.run
                await ben.node.submit(AnswerConsent(run=each.run, decision="no"))
            await wait_for(ben.node, lambda s: not s.consents)
            await asyncio.wait_for(ben.node._runs._idle.wait(), LIMIT_S)
        wanted = {run_of(each) for each in hostile.heard if isinstance(each, ms.FilesWanted)}
        assert not wanted & {plan.run for plan in evil[1::2]}
        approved = ben.node._neighbours.trust.store.peer(id_of(mallory.node))
        assert approved is not None and EVIL.digest not in approved.approved_projects
        assert not ben.trainers and EVIL_FILE not in received(ben.node)
        assert allowed >= 4, "some came in time"


async def test_a_permission_is_for_exactly_those_bytes_and_that_plan(tmp_path: Path) -> None:
    async with two(tmp_path) as (mallory, ben):
        hostile = Hostile(mallory.node, ben.node)
        plan = hostile.asks(HARMLESS)
        await wait_for(ben.node, lambda s: bool(s.consents))
        assert await ben.node.submit(AnswerConsent(run=plan.run, decision="once")) == Done()
        await hostile.hears(ms.FilesWanted, plan.run)
        hostile.say(ms.FilesFrom(run=plan.run, giver=plan.starter))
        hostile.offers(HARMLESS, EVIL_FILE[: len(HARMLESS_FILE)])
        declined = await hostile.hears(ms.Declined, plan.run)
        assert declined.problem.what
        await asyncio.wait_for(ben.node._runs._idle.wait(), LIMIT_S)

        hostile.offers(HARMLESS, HARMLESS_FILE)
        plan = hostile.asks(HARMLESS)  # allowed before, so nobody is asked
        await hostile.hears(ms.FilesWanted, plan.run)
        hostile.say(ms.FilesFrom(run=plan.run, giver=plan.starter))
        ready = await hostile.hears(ms.Prepared, plan.run)
        tasks = tuple(replace(task, port=task.port or 20001) for task in plan.tasks)
        other = replace(plan, tasks=tasks, arguments=("--output", "/etc"))
        assert ready.ports
        hostile.say(ms.Launch(plan=other))
        await asyncio.wait_for(ben.node._runs._idle.wait(), LIMIT_S)
        assert not ben.trainers


# --- checkpoints -------------------------------------------------------------------------------------------


def told(run: RunId, moment: Moment, files: Manifest) -> ms.CheckpointTold:
    kept = ms.KeptCheckpoint(moment=moment, shares=(32, 32), files=files)
    return ms.CheckpointTold(run=run, kept=kept)


def file(path: str, size: int = 10) -> ProjectFile:
    return ProjectFile(path=path, size=size, sha256=hashlib.sha256(bytes(size)).hexdigest())


HOSTILE_LISTS = {
    "a way out": ("../../../thesis",),
    "from the root": ("/tmp/thesis",),
    "a name of its own": ("sitecustomize.py",),
    "too large": ("head.json",),
    "thousands": tuple(f"{number}" for number in range(5000)),
}
NEWEST = Moment(step=4_000, fit=1, epoch=9, batch=3)


@pytest.mark.parametrize("kind", [*HOSTILE_LISTS, "no moment", "other bytes", "silence"])
async def test_a_hostile_checkpoint_writes_nothing_elsewhere_and_the_own_one_is_used(
    tmp_path: Path, kind: str
) -> None:
    spec = project(tmp_path / "somewhere" / "digits")
    async with two(tmp_path) as (anna, ben):
        run = await train(anna, ben, spec)
        assert await anna.node.submit(StopRun()) == Done()
        for laptop in (anna, ben):
            await outcome(laptop)
        await wait_tidy(anna, ben)
        keep(anna.node.home.runs / run / run_folder.CHECKPOINTS, 40)
        mine = checkpoint_store.newest(anna.node.home.runs / run / run_folder.CHECKPOINTS)
        assert mine is not None
        hostile = Hostile(ben.node, anna.node)
        sound = checkpoint_store.listing(mine)
        size = 1 << 62 if kind == "too large" else 10
        lists = {
            name: Manifest(script="", files=tuple(sorted((file(path, 10) for path in paths), key=str)))
            for name, paths in HOSTILE_LISTS.items()
            if name != "too large"
        }
        lists["too large"] = Manifest(
            script="", files=(ProjectFile(path="head.json", size=size, sha256="0" * 64),)
        )

        def answer(message: ms.Message) -> None:
            if isinstance(message, ms.CheckpointAsked):
                moment = replace(NEWEST, step=-(2**60)) if kind == "no moment" else NEWEST
                files = lists.get(kind) or replace(sound, files=_renamed(sound))
                hostile.say(told(message.run, moment, files))
            elif isinstance(message, ms.CheckpointWanted) and message.checkpoint and kind != "silence":
                hostile.offers(replace(sound, files=_renamed(sound)), b"evil" * 1000)

        hostile.on_heard = answer
        heard = Heard(anna.node)
        assert await anna.node.submit(FindCheckpoints(run=run)) == Done()
        before = below(tmp_path)
        asking = asyncio.create_task(anna.node.submit(StartRun(spec=replace(spec, resume=run))))
        if kind == "silence":
            await hostile.hears(ms.CheckpointWanted, run)
            hostile.node._neighbours.links.drop(id_of(anna.node), OVER)
        accepted = await asyncio.wait_for(asking, LIMIT_S)
        if isinstance(accepted, RunAccepted):
            state = await wait_for(anna.node, lambda s: s.run is not None and s.run.plan.run == accepted.run)
            assert state.run is not None and state.run.plan.resume is not None
            assert state.run.plan.resume.moment.step == 40, "the one that lies here"
        else:
            assert kind == "silence", refusal(accepted)
        assert b"evil" not in received(anna.node)
        new = below(tmp_path) - before
        home = anna.node.home.folder
        assert all(path.is_relative_to(home) or path.is_relative_to(ben.node.home.folder) for path in new)
        assert not [each for each in heard.events if isinstance(each, ev.CheckpointFound) and kind in lists]
        assert any(isinstance(each, ms.CheckpointAsked) for each in hostile.heard)
        wanted = [each for each in hostile.heard if isinstance(each, ms.CheckpointWanted) and each.checkpoint]
        assert bool(wanted) is (kind in ("other bytes", "silence")), "what is refused at sight is not fetched"


def _renamed(sound: Manifest) -> tuple[ProjectFile, ...]:
    """The file names of a sound checkpoint, with other content."""
    return tuple(
        replace(each, size=4000, sha256=hashlib.sha256(b"good" * 1000).hexdigest()) for each in sound.files
    )
