"""What a paired device that means harm sends to a node: whole nodes, real files, links in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.cluster.make_plan import make_plan, new_run_id
from core.run import problems
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Plan, Role, RunSpec
from tests.core.project.making import manifest_for
from tests.core.run.lan import Lan, LanNode

HARMLESS = manifest_for({"train.py": b"print('hello')"})
EVIL_TEXT = b"import os; os.system('evil')"
EVIL = manifest_for({"train.py": EVIL_TEXT})
OVER = Problem(code="over", what="It is over.")


@pytest.fixture
async def lan(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Ben", "Mallory")) as lan:
        lan.nodes["Ben"].ask_before_running(lan.nodes["Mallory"])
        yield lan


def plan_by(mallory: LanNode, ben: LanNode, manifest: Manifest, **changes: object) -> Plan:
    devices = (mallory.device, ben.device)
    plan = make_plan(
        RunSpec(script="train.py"),
        starter=mallory.device,
        project=manifest.digest,
        script="train.py",
        strategy="managed",
        roles={mallory.device: (Role.CHIEF,), ben.device: (Role.WORKER,)},
        names=dict.fromkeys(devices, "laptop"),
        hosts=dict.fromkeys(devices, "127.0.0.1"),
    )
    return replace(plan, **changes)


class Mallory:
    """Sends what it likes over its link to Ben, and notes what Ben answers."""

    def __init__(self, lan: Lan, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lan, self.ben, self.node = lan, lan.nodes["Ben"], lan.nodes["Mallory"]
        self.heard: list[ms.Message] = []
        monkeypatch.setattr(self.node.runs, "on_message", lambda _, message: self.heard.append(message))

    def say(self, message: ms.Message) -> None:
        self.node.send(self.ben.device, message)

    def prepare(self, manifest: Manifest, **changes: object) -> Plan:
        plan = plan_by(self.node, self.ben, manifest, **changes)
        self.say(ms.Prepare(plan=plan, manifest=manifest))
        return plan

    def refusals(self) -> list[str]:
        return [heard.problem.code for heard in self.heard if isinstance(heard, ms.Declined)]


@pytest.fixture
def mallory(lan: Lan, monkeypatch: pytest.MonkeyPatch) -> Mallory:
    return Mallory(lan, monkeypatch)


async def test_a_runs_id_never_becomes_a_path(lan: Lan, mallory: Mallory, tmp_path: Path) -> None:
    ben = mallory.ben
    mine = tmp_path / "thesis" / "tasks" / "chapter.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    for number, run in enumerate((str(tmp_path / "thesis"), "../../thesis", "..", "", "a/b", "x" * 300), 1):
        plan = mallory.prepare(HARMLESS, run=RunId(run))
        mallory.say(ms.RunAbandoned(run=plan.run, problem=OVER))

        def is_refused(number: int = number) -> bool:
            return len(mallory.refusals()) == number

        await lan.wait_until(is_refused)
    await lan.wait_until(lambda: not ben.runs.busy)
    assert mallory.refusals() == ["broken-talk"] * 6
    assert mine.read_text() == "years of work"
    assert not ben.state.consents


async def test_an_answer_never_allows_another_project_under_the_same_runs_id(
    lan: Lan, mallory: Mallory
) -> None:
    ben = mallory.ben
    plan = mallory.prepare(HARMLESS)
    await lan.wait_until(lambda: ben.state.consents)
    # While Ben reads the question, its subject is exchanged.
    mallory.say(ms.RunAbandoned(run=plan.run, problem=OVER))
    mallory.prepare(EVIL, run=plan.run)
    await lan.wait_until(lambda: mallory.refusals() == ["run-known"])
    assert not ben.state.consents
    with pytest.raises(TandemError) as late:
        await ben.runs.answer_consent(plan.run, "once")
    assert late.value.code == "no-such-question"
    assert not ben.trainers


async def test_a_no_that_was_said_while_the_starter_was_away_is_told_when_it_asks_again(
    lan: Lan, mallory: Mallory
) -> None:
    ben = mallory.ben
    plan = mallory.prepare(HARMLESS, exchange="tls")
    await lan.wait_until(lambda: ben.state.consents)
    lan.cut(mallory.node, ben)
    await ben.runs.answer_consent(plan.run, "no")
    await lan.wait_until(lambda: not ben.runs.busy)
    assert not mallory.refusals(), "nothing came over the cut link"
    lan.mend(mallory.node, ben)
    mallory.say(ms.Prepare(plan=plan, manifest=HARMLESS))
    await lan.wait_until(lambda: mallory.refusals() == [problems.refused_by_user().code])
    assert not ben.state.consents and not ben.trainers


async def test_a_run_that_is_in_the_history_is_not_written_over(
    lan: Lan, mallory: Mallory, tmp_path: Path
) -> None:
    ben = mallory.ben
    kept = ben.home.runs / new_run_id()
    kept.mkdir()
    mallory.prepare(HARMLESS, run=RunId(kept.name))
    await lan.wait_until(lambda: mallory.refusals() == ["run-known"])
    assert not [event for event in ben.events if isinstance(event, ev.ConsentAsked)]


async def test_other_arguments_of_an_allowed_project_ask_again(lan: Lan, mallory: Mallory) -> None:
    ben = mallory.ben
    for arguments, asks in (((), True), ((), False), (("--out", "/etc"), True), (("--out", "/etc"), False)):
        ben.events.clear()
        mallory.heard.clear()
        plan = mallory.prepare(HARMLESS, arguments=arguments)
        if asks:
            await lan.wait_until(lambda: ben.state.consents)
            assert ben.state.consents[0].arguments == arguments
            await ben.runs.answer_consent(plan.run, "once")
        await lan.wait_until(lambda: [each for each in mallory.heard if isinstance(each, ms.FilesWanted)])
        assert bool([event for event in ben.events if isinstance(event, ev.ConsentAsked)]) is asks
        mallory.say(ms.RunAbandoned(run=plan.run, problem=OVER))
        lan.clock.advance(1000.0)
        await lan.wait_until(lambda: not ben.runs.busy)


async def test_an_unsafe_project_is_refused_before_anybody_is_asked(lan: Lan, mallory: Mallory) -> None:
    mallory.prepare(manifest_for({"train.py": b"1", "../up.py": b"2"}))
    await lan.wait_until(lambda: mallory.refusals() == ["project-refused"])
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]
    await lan.wait_until(lambda: not mallory.ben.runs.busy)


async def test_texts_that_are_not_the_projects_are_refused_before_anybody_is_asked(
    lan: Lan, mallory: Mallory
) -> None:
    """Were they shown, Ben would say yes to something else than what runs."""
    for texts in ({"train.py": b"print('hello')"}, {"train.py": EVIL_TEXT, "other.py": b"1"}):
        mallory.heard.clear()
        plan = plan_by(mallory.node, mallory.ben, EVIL)
        mallory.say(ms.Prepare(plan=plan, manifest=EVIL, texts=texts))
        await lan.wait_until(lambda: mallory.refusals() == ["broken-talk"])
        await lan.wait_until(lambda: not mallory.ben.runs.busy)
    assert not [event for event in mallory.ben.events if isinstance(event, ev.ConsentAsked)]
