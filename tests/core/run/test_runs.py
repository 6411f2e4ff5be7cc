"""Whole nodes' runs over links in memory: real files and machines, fake trainers, a clock moved by hand."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import ssl
import time
from base64 import b64encode
from functools import partial
from pathlib import Path
from pkgutil import resolve_name

import pytest
from msgspec.structs import replace

from core.exchange.keys import RunPair
from core.home import trust_file
from core.home.trust import may_run
from core.project.files import ReadMeter
from core.run import planner, planning
from core.run.context import RunLimits
from core.run.coordinator.driver import CoordinatorDriver
from core.run.leftovers import DAY_S, Leftovers
from core.run.participant.driver import ParticipantDriver
from core.vocabulary import events as ev
from core.vocabulary import limits, run_folder, wire
from core.vocabulary.answers import ScriptRead
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.options import AWAY_S
from core.vocabulary.peer_messages import Message, Prepare
from core.vocabulary.permission import asked_by
from core.vocabulary.phases import Failed, Finished, Preparing, Stopped, Stopping, Training
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.progress import Expectation, LogLines, Progress
from core.vocabulary.settings import Settings
from core.vocabulary.trainer_messages import Measured, MeetWithout, Progressed
from tests.core.run.lan import CLOSED, FakeTrainer, Lan, LanNode
from tests.core.run.world import failing


def both(lan: Lan) -> tuple[LanNode, LanNode]:
    return lan.nodes["Anna"], lan.nodes["Ben"]


async def launch(lan: Lan, spec: RunSpec) -> None:
    await lan.nodes["Anna"].runs.start(spec)
    await lan.wait_until(lambda: all(node.runs_a_trainer for node in lan.nodes.values()))


async def train(lan: Lan, spec: RunSpec) -> None:
    await launch(lan, spec)
    for node in lan.nodes.values():
        node.trainers[-1].meet()
        node.trainers[-1].make_step()
    await lan.wait_until(lambda: all(isinstance(node.phase, Training) for node in lan.nodes.values()))


def files_under(folder: Path) -> list[bytes]:
    """Tolerates working copies being removed meanwhile."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found.append(Path(place, name).read_bytes())
    return found


async def wait_over(lan: Lan) -> None:
    await lan.wait_until(
        lambda: all(node.over or (node.phase is None and not node.runs.busy) for node in lan.nodes.values())
    )
    for node in lan.nodes.values():
        assert all(trainer.over for trainer in node.trainers)
        assert len(node.last_phases()) <= 1


async def finish(lan: Lan) -> None:
    """Every newest trainer ends, and with them the run."""
    for node in lan.nodes.values():
        node.trainers[-1].end()
    await wait_over(lan)
    assert isinstance(lan.nodes["Anna"].phase, Finished)


def keep(trainer: FakeTrainer, name: str) -> None:
    """As saved by the chief's trainer at its end."""
    kept = Path(trainer.train.keep)
    (kept / "parts").mkdir(parents=True, exist_ok=True)
    (kept / name).write_bytes(b"trained")


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def problem_of(node: LanNode) -> str:
    assert isinstance(node.phase, Failed), node.phase
    return node.phase.problem.code


# --- the usual way ----------------------------------------------------------------------------


async def test_a_project_whose_list_of_files_fits_no_message_trains_as_any_other(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    data = Path(spec.script).with_name("data")
    data.mkdir()
    for number in range(1_000):
        (data / f"{'x' * 200}{number}").touch()
    (data / "large.bin").write_bytes(b"1" * 2_000_000)
    ben.ask_before_running(anna)
    run = await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    assert len(ben.state.consents[0].files) > 1_000
    await ben.runs.answer_consent(run, "once")
    await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
    assert sum(1 for _ in (ben.trainers[0].work / "data").iterdir()) == 1_001
    for node in (anna, ben):
        node.trainers[0].end()
    await wait_over(lan)


async def test_two_nodes_train_and_both_keep_the_run(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    assert anna.runs.busy
    assert ben.runs.busy
    chief, worker = anna.trainers[0], ben.trainers[0]
    assert chief.work == Path(spec.script).parent
    assert worker.work.is_relative_to(ben.home.runs)
    assert (worker.work / "data.csv").read_bytes() == (chief.work / "data.csv").read_bytes()
    assert chief.train.tf_config.replace('"chief", "index"', '"worker", "index"') == worker.train.tf_config
    assert worker.train.peers["chief:0"].startswith("Anna at 127.0.0.1:")
    (chief.work / "model.keras").write_bytes(b"weights")
    keep(chief, "model.keras")
    worker.write(LogLines(task="worker:0", stream="stdout", text="hello from Ben"))
    await finish(lan)
    assert ben.state.run is not None
    assert ben.state.run.phase == anna.phase
    run = anna.state.run
    assert run is not None
    folder = anna.home.runs / run.plan.run
    assert (folder / "outputs" / "model.keras").read_bytes() == b"weights"
    assert run.summary is not None
    assert run.summary.outputs == ("model.keras", "trained/model.keras")
    assert (folder / "outputs" / "trained" / "model.keras").read_bytes() == b"trained"
    assert not (chief.work / "trained").exists(), "what lies beside the script is the user's"
    assert not (folder / "kept").exists()
    for node in (anna, ben):
        details = await node.runs.history.find(run.plan.run[:15])
        assert details.plan == run.plan
        assert [len(steps) for steps in details.steps.values()] == [1, 1]
        assert details.entry.phase == Finished()
        assert details.entry.duration_s is not None
        assert (await node.runs.history.newest(5)).runs == (details.entry,)
    assert "hello from Ben" in (await anna.runs.history.find(run.plan.run)).log
    assert details.entry.source == ""
    assert details.entry.spec is None, "what was asked for is the starter's own"
    asked = (await anna.runs.history.find(run.plan.run)).entry
    assert (asked.started_s, asked.duration_s) == (details.entry.started_s, details.entry.duration_s)
    assert asked.spec == spec
    assert asked.device_ids == tuple(member.device for member in run.plan.members)
    assert anna.notices == ben.notices == []
    await lan.wait_until(lambda: not worker.work.exists())


async def test_progress_of_reading_files_is_reported_until_it_has_ended(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ReadMeter", partial(ReadMeter, every_s=0))
    anna, _ = both(lan)
    read = await anna.runs.planner.read(spec.script)
    assert isinstance(read, ScriptRead)
    told = [event for event in anna.events if isinstance(event, ev.FilesRead)]
    assert {event.script for event in told} == {spec.script}
    assert (told[-1].done, told[-1].total) == (0, 0)
    assert [event.total for event in told[:-1]] == [read.total_bytes] * len(read.files)
    assert anna.state.reading is None


async def test_the_next_plan_says_how_fast_the_last_run_was(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    assert (await anna.runs.planner.preview(spec)).expectation == ""
    await train(lan, spec)
    assert anna.trainers[0].train.balance
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.08, wire_s=0.01, wire_bytes=9, shares=(40, 24))
    for node in (anna, ben):
        node.trainers[0].say(Measured(expectation=expectation))
    for number in range(1, 4):
        lan.clock.advance(1.0)
        for node, share in ((anna, 44), (ben, 20)):
            step = Progress(
                at_s=number, epoch=0, epochs=1, step=number, batch=number, step_s=0.07, share=share
            )
            node.trainers[0].say(Progressed(progress=step))
    for node in (anna, ben):
        node.trainers[0].end()
    await wait_over(lan)
    made = await anna.runs.planner.preview(spec)
    assert made.expectation == "Last time on these laptops: about 1.4× as fast as Anna alone."
    assert list(made.last_shares.values()) == [44, 20]
    solo = await anna.runs.planner.preview(replace(spec, solo=True))
    assert solo.expectation == ""


async def test_a_second_run_sends_nothing_that_is_there_already(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    for _ in range(2):
        ben.events.clear()
        anna.events.clear()
        await train(lan, spec)
        for node in (anna, ben):
            node.trainers[-1].end()
        await wait_over(lan)
    assert isinstance(ben.phase, Finished)
    phases = [event.phase for event in ben.events if isinstance(event, ev.MemberPhaseChanged)]
    assert "receiving" not in phases


async def test_leftovers_are_removed_between_runs_only_and_once(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[int] = []

    def trim(leftovers: Leftovers, keep_s: int, keep_bytes: int) -> int:
        trims.append(keep_s // DAY_S)
        return 0

    def keep_days(days: int) -> None:
        anna.emit(ev.SettingsChanged(settings=Settings(name="Anna", keep_days=days)))
        anna.runs.begin_trim()

    monkeypatch.setattr(Leftovers, "trim", trim)
    anna, ben = both(lan)
    ben.emit(ev.SettingsChanged(settings=Settings(name="Ben", keep_days=1)))
    keep_days(5)
    anna.runs.begin_trim()
    keep_days(6)
    await lan.wait_until(lambda: 6 in trims)
    assert trims == [5, 6], "equal ones are one"
    await launch(lan, spec)
    keep_days(7)
    anna.emit(ev.SettingsChanged(settings=Settings(name="Anna", keep_days=8)))
    await finish(lan)
    await lan.wait_until(lambda: {1, 8} <= set(trims))
    assert sorted(trims) == [1, 5, 6, 8], "none during the run"
    keep_days(8)
    await lan.wait_until(lambda: trims.count(8) == 2)


async def test_no_leftovers_are_removed_while_tandem_closes(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[int] = []
    monkeypatch.setattr(Leftovers, "trim", lambda leftovers, *kept: trims.append(kept[0] // DAY_S))
    anna, ben = both(lan)
    ben.emit(ev.SettingsChanged(settings=Settings(name="Ben", keep_days=1)))
    await train(lan, spec)
    await anna.runs.close()
    lan.lose(anna, ben, CLOSED)
    await lan.wait_until(lambda: anna.over and 1 in trims)
    assert trims == [1]
    del lan.nodes["Anna"]


async def test_peers_projects_are_removed_after_the_run_if_nothing_is_to_be_kept(
    lan: Lan, spec: RunSpec
) -> None:
    _, ben = both(lan)
    ben.emit(ev.SettingsChanged(settings=Settings(name="Ben", keep_days=0)))
    await launch(lan, spec)
    assert list(ben.home.projects.glob("*.json"))
    await finish(lan)
    await lan.wait_until(lambda: not list(ben.home.projects.glob("*.json")))
    (folder,) = ben.home.runs.glob("*/")
    assert (folder / run_folder.PLAN).exists() and not (folder / run_folder.LOGS).exists()


async def test_three_nodes_train_with_the_middle_one_as_chief(three: Lan, spec: RunSpec) -> None:
    ben = three.nodes["Ben"]
    await train(three, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    (ben.trainers[0].work / "checkpoints").mkdir()
    (ben.trainers[0].work / "checkpoints" / "last.weights.h5").write_bytes(b"weights" * 100_000)
    (ben.trainers[0].work / "empty.txt").touch()
    (ben.trainers[0].work / "trained").mkdir()
    (ben.trainers[0].work / "trained" / "model.keras").write_bytes(b"the script's")
    keep(ben.trainers[0], "model.keras")
    keep(ben.trainers[0], "model-2.weights.h5")
    for node in three.nodes.values():
        node.trainers[0].end()
    await wait_over(three)
    anna = three.nodes["Anna"]
    assert isinstance(anna.phase, Finished)
    assert anna.state.run is not None
    outputs = anna.home.runs / anna.state.run.plan.run / "outputs"
    assert (outputs / "checkpoints" / "last.weights.h5").stat().st_size == 700_000
    assert (outputs / "empty.txt").exists()
    assert (outputs / "trained" / "model.keras").read_bytes() == b"the script's"
    assert (outputs / "trained-2" / "model.keras").read_bytes() == b"trained"
    assert (outputs / "trained-2" / "model-2.weights.h5").read_bytes() == b"trained"
    assert "is in" in "".join(line for log in anna.state.run.members[ben.device].log.values() for line in log)
    assert str(anna.home.folder) not in str(three.nodes["Cleo"].state.run)


async def test_two_tasks_on_one_device_have_a_working_copy_each(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    roles = {anna.device: (Role.CHIEF, Role.PS), ben.device: (Role.WORKER, Role.WORKER)}
    await anna.runs.start(replace(spec, roles=roles, strategy="own"))
    await lan.wait_until(lambda: len(anna.trainers) == len(ben.trainers) == 2)
    folders = {trainer.work for node in (anna, ben) for trainer in node.trainers}
    assert len(folders) == 4
    assert {trainer.train.task for trainer in anna.trainers} == {"chief:0", "ps:0"}
    anna.trainers[0].end()
    await wait_over(lan)
    assert isinstance(anna.phase, Finished)


async def test_a_script_is_read_without_running_it(lan: Lan, spec: RunSpec) -> None:
    read = planning.read_script(Path(spec.script))
    assert isinstance(read, ScriptRead)
    assert read.kind == "managed"
    assert {file.path for file in read.files} == {"train.py", "data.csv"}


async def no_reports() -> int:
    return 0


async def test_leftovers_of_others_runs_are_cleared_once_none_is_under_way(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await launch(lan, spec)
    with pytest.raises(TandemError) as refusal:
        await ben.runs.clear(no_reports)
    assert refusal.value.code == "busy"
    await finish(lan)
    assert await anna.runs.clear(no_reports) == 0 and list(ben.home.projects.glob("*.json"))
    assert await ben.runs.clear(no_reports) > 0 and not list(ben.home.projects.glob("*.json"))
    assert len((await ben.runs.history.newest(5)).runs) == 1


# --- refusals -----------------------------------------------------------------------------------


async def test_a_second_run_at_the_same_time_is_refused_on_both_sides(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await launch(lan, spec)
    for node in (anna, ben):
        with pytest.raises(TandemError) as caught:
            await node.runs.start(spec)
        assert caught.value.code == "busy"


async def test_a_busy_peer_declines(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await ben.runs.start(replace(spec, solo=True))
    await anna.runs.start(spec)
    await lan.wait_until(lambda: anna.over)
    assert problem_of(anna) == "device-busy"
    assert not isinstance(ben.phase, Failed)


async def test_a_run_whose_only_partner_is_away_is_refused_unless_it_is_meant_alone(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    lan.cut(anna, ben)
    with pytest.raises(
        TandemError, match=r"No other laptop can take part in this run\. Ben is not"
    ) as caught:
        await anna.runs.start(spec)
    assert caught.value.code == "would-be-alone"
    assert not anna.runs.busy and anna.state.run is None
    await anna.runs.start(replace(spec, solo=True))
    await lan.wait_until(lambda: anna.runs_a_trainer)
    anna.trainers[0].end()
    await lan.wait_until(lambda: anna.over)


async def test_a_run_of_some_laptops_names_the_missing_ones(three: Lan, spec: RunSpec) -> None:
    anna, cleo = three.nodes["Anna"], three.nodes["Cleo"]
    three.cut(anna, cleo)
    await anna.runs.start(spec)
    logged = [event.lines.text for event in anna.events if isinstance(event, ev.MemberLogged)]
    assert [text for text in logged if "Cleo is not connected" in text and "goes without it" in text]
    anna.runs.stop()
    await three.wait_until(lambda: anna.over)


async def test_a_run_alone_ignores_requested_shares_and_says_so(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    shares = {anna.device: 48, ben.device: 16}
    await anna.runs.start(replace(spec, solo=True, shares=shares))
    assert anna.state.run is not None
    assert [member.share for member in anna.state.run.plan.members] == [1]
    logged = [event.lines.text for event in anna.events if isinstance(event, ev.MemberLogged)]
    assert [text for text in logged if "the requested shares are ignored" in text]
    await lan.wait_until(lambda: anna.runs_a_trainer)
    anna.trainers[0].end()
    await lan.wait_until(lambda: anna.over)


async def test_trainers_are_made_ready_while_a_run_is_being_prepared_if_the_user_wants_that(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = both(lan)
    foreseen: list[LanNode] = []
    for node in (anna, ben):

        async def keep(node: LanNode = node) -> None:
            foreseen.append(node)

        monkeypatch.setattr(node.runs.warm, "_foresees", True)
        monkeypatch.setattr(node.runs.warm, "_try_to_make_ready", keep)
    script = Path(spec.script)
    script.write_text(f"import keras\n{script.read_text()}")
    ben.ask_before_running(anna)
    await anna.runs.planner.preview(spec)
    await lan.wait_until(lambda: foreseen)
    assert foreseen == [ben], "asked for modules, it expects a run"
    run = await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    assert foreseen[1] is anna and foreseen.count(ben) >= 2, "before its user has answered"
    await ben.runs.answer_consent(run, "no")
    await wait_over(lan)
    foreseen.clear()
    for node in (anna, ben):
        node.emit(ev.SettingsChanged(settings=Settings(name=node.name, foresee=False)))
    await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    assert foreseen == []


# --- consent --------------------------------------------------------------------------------------


async def ask(lan: Lan, spec: RunSpec) -> ev.ConsentAsked:
    anna, ben = both(lan)
    ben.ask_before_running(anna)
    await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    return next(event for event in ben.events if isinstance(event, ev.ConsentAsked))


async def test_the_starters_own_script_is_held_to_what_the_others_were_asked_about(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    await launch(lan, spec)
    mine, theirs = (node.trainers[-1].train for node in (anna, ben))
    assert anna.state.run is not None
    held_to = wire.from_json(Path(mine.agreed).read_bytes(), Manifest)
    assert held_to.digest == anna.state.run.plan.project
    assert Path(mine.folder) == Path(spec.script).parent
    assert theirs.agreed == "", "its copy was checked when it was made"
    await finish(lan)
    await anna.runs.start(replace(spec, solo=True))
    await lan.wait_until(lambda: len(anna.trainers) == 2)
    assert anna.trainers[-1].train.agreed == "", "nobody was asked"


async def test_the_files_shown_before_the_yes_are_the_ones_that_run(lan: Lan, spec: RunSpec) -> None:
    """The texts come with the question and are not stored; a later question reports the changes."""
    _, ben = both(lan)
    question = await ask(lan, spec)
    read = await ben.runs.look_at_request(question.run)
    script = read.files[0]
    assert (script.path, script.text) == ("train.py", Path(spec.script).read_text())
    assert script.change == ""
    assert not list(ben.home.projects.iterdir())
    await ben.runs.answer_consent(question.run, "once")
    await lan.wait_until(lambda: ben.trainers)
    ran = ben.home.runs / question.run / "tasks"
    copies = [path.read_text() for path in ran.rglob("train.py")]
    assert copies == [script.text]
    with pytest.raises(TandemError) as over:
        await ben.runs.look_at_request(question.run)
    assert over.value.code == "no-such-question"
    lan.nodes["Anna"].runs.stop()
    await wait_over(lan)

    Path(spec.script).write_text(f"{script.text}\nmodel.fit(x, y, epochs=7)\n")
    ben.events.clear()
    again = await ask(lan, spec)
    assert again.changed
    changed = (await ben.runs.look_at_request(again.run)).files[0]
    assert changed.change == "changed"
    assert "+model.fit(x, y, epochs=7)" in changed.diff.split("\n")


@pytest.mark.parametrize(
    ("decision", "policy", "same_again", "another"),
    [("no", "ask", False, False), ("once", "ask", True, False), ("always", "always", True, True)],
)
async def test_an_answer_is_stored_and_counts_the_next_time(
    lan: Lan, spec: RunSpec, decision: Decision, policy: str, same_again: bool, another: bool
) -> None:
    anna, ben = both(lan)
    question = await ask(lan, spec)
    await ben.runs.answer_consent(question.run, decision)
    kept = ben.trust.store if decision == "no" else trust_file.load(ben.home.folder, ben.device)[0]
    peer = kept.peer(anna.device)
    assert peer is not None and peer.code_policy == policy
    assert anna.state.run is not None
    plan = anna.state.run.plan
    assert may_run(kept, anna.device, asked_by(plan, "none")) is same_again
    assert may_run(kept, anna.device, asked_by(replace(plan, project=ProjectId("f" * 64)), "none")) is another


async def test_no_link_brings_a_request_in_this_laptops_own_name(lan: Lan, spec: RunSpec) -> None:
    """Whoever pressed Train here is not asked: a peer taken for that person could run its code."""
    anna, ben = both(lan)
    await launch(lan, spec)
    assert anna.state.run is not None
    plan = replace(anna.state.run.plan, run=RunId("run-in-another-name"), starter=ben.device)
    manifest = Manifest(script=plan.script, files=())
    anna.runs.stop()
    await wait_over(lan)
    ben.runs.on_message(ben.device, Prepare(plan=plan, manifest=manifest, source=str(ben.home.folder)))
    assert not ben.runs.busy
    assert not ben.runs_a_trainer


async def test_a_changed_byte_asks_again_and_says_so(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    question = await ask(lan, spec)
    await ben.runs.answer_consent(question.run, "once")
    await lan.wait_until(lambda: ben.trainers)
    anna.runs.stop()
    await wait_over(lan)
    Path(spec.script).write_text(Path(spec.script).read_text() + "# one more line\n")
    (Path(spec.script).parent / "weights.bin").write_bytes(b"new")
    ben.events.clear()
    question = await ask(lan, spec)
    assert question.changed
    assert question.differs == {"train.py": "changed", "weights.bin": "new"}


async def test_a_question_about_other_arguments_says_that_no_file_changed(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    question = await ask(lan, spec)
    assert not question.changed and not question.differs, "nothing was allowed before"
    await ben.runs.answer_consent(question.run, "once")
    await lan.wait_until(lambda: ben.trainers)
    anna.runs.stop()
    await wait_over(lan)
    ben.events.clear()
    question = await ask(lan, replace(spec, arguments=("--epochs", "9")))
    assert question.changed and question.differs == {}


# --- losses ----------------------------------------------------------------------------------------


async def test_files_on_their_way_to_a_laptop_that_is_away_come_when_it_is_back(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    for number in range(8):
        Path(spec.script).with_name(f"part{number}.bin").write_bytes(bytes([number]) * 1_000_000)
    anna.files.limit_bytes = 4_000_000
    await anna.runs.start(spec)

    def came() -> int:
        return ben.files.received_bytes

    await lan.wait_until(lambda: came() > 2_000_000)
    lan.cut(anna, ben)
    assert came() < 8_000_000 and isinstance(anna.phase, Preparing)
    lan.clock.advance(limits.RECEIVE_S + 60.0)
    assert isinstance(anna.phase, Preparing), "nobody was given up meanwhile"
    lan.mend(anna, ben)
    await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
    assert (ben.trainers[0].work / "part7.bin").read_bytes() == bytes([7]) * 1_000_000
    await finish(lan)


@pytest.mark.parametrize("others_train", [True, False])
async def test_a_laptop_that_is_away_while_its_outputs_come_sends_the_rest_when_it_is_back(
    lan: Lan, spec: RunSpec, others_train: bool
) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    (ben.trainers[0].work / "first.bin").write_bytes(b"1" * 300_000)
    (ben.trainers[0].work / "second.bin").write_bytes(b"2" * 6_000_000)
    ben.files.limit_bytes = 2_000_000
    if not others_train:
        anna.trainers[0].end()
    ben.trainers[0].end()
    coordinator = anna.runs._coordinator
    assert coordinator is not None
    await lan.wait_until(lambda: anna.files.received_bytes > 300_000)
    lan.cut(anna, ben)
    assert coordinator.state.outputs == "coming"
    assert anna.files.received_bytes < 6_300_000
    lan.clock.advance(limits.OUTPUTS_S + 30.0)
    assert anna.state.run is not None and not anna.over
    lan.mend(anna, ben)
    await lan.wait_until(lambda: coordinator.state.outputs == "here")
    if others_train:
        anna.trainers[0].end()
    await wait_over(lan)
    assert isinstance(anna.phase, Finished) and ben.phase == anna.phase
    outputs = anna.home.runs / anna.state.run.plan.run / "outputs"
    assert (outputs / "first.bin").stat().st_size == 300_000
    assert (outputs / "second.bin").read_bytes() == b"2" * 6_000_000


async def test_after_the_link_to_the_chief_failed_in_training_the_other_one_leads(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    lan.lose(anna, ben, Problem(code="link-failed", what="The link failed."))
    await lan.wait_until(lambda: ben.over)
    assert problem_of(ben) == "starter-lost" and anna.runs_a_trainer, "it had no checkpoint"
    assert [trainer.forces for node in (anna, ben) for trainer in node.trainers] == [[], [0]]
    written = anna.trainers[0].work / "by-the-next-one.txt"
    written.write_text("kept")
    anna.trainers[0].end()
    await wait_over(lan)
    assert isinstance(anna.phase, Finished) and anna.state.run is not None
    assert (anna.home.runs / anna.state.run.plan.run / "outputs" / written.name).read_text() == "kept"


async def test_the_time_since_which_a_laptop_is_away_is_right_after_this_one_slept(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    woke_s = time.time() + 3600.0  # the run's clock stood still meanwhile
    monkeypatch.setattr(time, "time", lambda: woke_s + lan.clock.now_s)
    lost_s = time.time()
    lan.cut(anna, ben)
    lan.clock.advance(3.0)
    for node in (anna, ben):
        assert node.state.run is not None and node.state.run.waiting is not None
        assert [wait.since_s for wait in node.state.run.waiting.waits] == [pytest.approx(lost_s, abs=1.0)]


async def test_stop_ends_the_part_of_a_laptop_whose_starter_is_away(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    lan.cut(anna, ben)
    ben.runs.stop()
    await lan.wait_until(lambda: ben.over)
    assert ben.trainers[0].forces == [2]
    anna.runs.stop()
    await lan.wait_until(lambda: anna.over)
    assert isinstance(anna.phase, Stopped)


async def test_only_the_starter_that_asks_lets_a_run_go_on_waiting(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, ask_after_s=60.0, go_on_s=AWAY_S))
    assert anna.state.run is not None
    run = anna.state.run.plan.run
    for node, wrong in ((ben, run), (anna, RunId("another"))):
        with pytest.raises(TandemError) as failure:
            node.runs.go_on_waiting(wrong)
        assert failure.value.code == "no-such-question"
    lan.cut(anna, ben)
    lan.clock.advance(70.0)
    assert anna.state.run.waiting is not None and anna.state.run.waiting.asks
    anna.runs.go_on_waiting(run)
    assert anna.state.run.waiting is not None and not anna.state.run.waiting.asks


async def test_a_remote_chiefs_outputs_stay_there_when_the_run_fails(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    (ben.trainers[0].work / "checkpoint.h5").write_bytes(b"half")
    anna.trainers[0].end(failing("script-error"))
    await wait_over(lan)
    assert ben.state.run is not None
    kept = ben.home.runs / ben.state.run.plan.run / "outputs" / "checkpoint.h5"
    await lan.wait_until(kept.exists)


@pytest.mark.parametrize("limits", [RunLimits(outputs_bytes=5)], ids=["five bytes"])
async def test_outputs_too_large_to_be_brought_back_stay_with_their_chief_that_lost_its_starter(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    work = Path(ben.trainers[0].train.folder)
    (work / "features.npz").write_bytes(b"features")
    (work / "loss.csv").write_bytes(b"loss")
    lan.cut(anna, ben)
    ben.runs.stop()
    await lan.wait_until(lambda: ben.over)
    await lan.wait_until(lambda: not work.exists())
    assert ben.state.run is not None
    kept = ben.home.runs / ben.state.run.plan.run
    assert (kept / "outputs" / "loss.csv").read_bytes() == b"loss"
    assert (kept / "outputs-left" / "features.npz").read_bytes() == b"features"


async def test_weights_trained_alone_before_an_error_are_saved(lan: Lan, spec: RunSpec) -> None:
    anna, _ = both(lan)
    await anna.runs.start(replace(spec, solo=True))
    await lan.wait_until(lambda: anna.trainers)
    keep(anna.trainers[0], "model.keras")
    anna.trainers[0].end(failing("script-error"))
    await wait_over(lan)
    assert isinstance(anna.phase, Failed)
    assert anna.state.run is not None
    model = anna.home.runs / anna.state.run.plan.run / "outputs" / "trained" / "model.keras"
    await lan.wait_until(model.exists)


@pytest.mark.parametrize("limits", [RunLimits(outputs_bytes=5)], ids=["five bytes"])
async def test_outputs_too_large_to_be_brought_back_stay_with_their_chief(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    work = Path(ben.trainers[0].train.folder)
    (work / "features.npz").write_bytes(b"features")
    await finish(lan)
    assert anna.state.run is not None
    left = ben.home.runs / anna.state.run.plan.run / "outputs-left" / "features.npz"
    assert left.read_bytes() == b"features"
    await lan.wait_until(lambda: not work.exists())
    words = [each.lines.text for each in anna.events if isinstance(each, ev.MemberLogged)]
    assert any("Not brought back: features.npz" in each and "outputs-left" in each for each in words)


@pytest.mark.parametrize("limits", [RunLimits(outputs_bytes=5)], ids=["five bytes"])
async def test_a_model_too_large_to_be_brought_back_stays_with_its_chief(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    keep(ben.trainers[0], "model.keras")
    await finish(lan)
    words = [each.lines.text for each in anna.events if isinstance(each, ev.MemberLogged)]
    assert any(
        "The trained model is too large to be brought back: it stays on Ben." in each for each in words
    )
    assert ben.state.run is not None
    model = ben.home.runs / ben.state.run.plan.run / "outputs" / "trained" / "model.keras"
    assert model.read_bytes() == b"trained"


# --- who leaves -------------------------------------------------------------------------------------


def said(node: LanNode) -> str:
    run = node.state.run
    return "" if run is None else "\n".join(run.members[run.plan.chief.device].log.get("chief:0", ()))


async def test_the_others_go_on_without_a_trainer_that_was_killed(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = (three.nodes[name] for name in ("Anna", "Ben", "Cleo"))
    await train(three, spec)
    ben.trainers[0].end(failing("killed", "It was killed."))
    await three.wait_until(lambda: anna.trainers[0].orders and cleo.trainers[0].orders)
    assert anna.trainers[0].orders == cleo.trainers[0].orders == [MeetWithout(generation=1, gone=(1,))]
    for node in (anna, ben, cleo):
        await three.wait_until(
            lambda node=node: "Ben was lost at step 1: It was killed. Anna and Cleo go on." in said(node)  # type: ignore[misc]
        )
        assert isinstance(node.phase, Training)
    for node in (anna, cleo):
        node.trainers[0].end()
    await wait_over(three)
    for node in (anna, ben, cleo):
        assert isinstance(node.phase, Finished)
        run = node.state.run
        assert run is not None and run.summary is not None and run.summary.left == {ben.device: 1}
        details = await node.runs.history.find(run.plan.run)
        gone = [(turn.change, turn.words) for turn in details.membership if turn.device == ben.device]
        assert gone[1:] == [("lost", "It was killed.")] and details.left == {ben.device}


async def test_stop_on_a_laptop_that_has_left_frees_it_and_nobody_else(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    ben.trainers[0].end(failing("out-of-memory", "It was too much."))
    await lan.wait_until(lambda: "Ben was lost" in said(ben))
    ben.runs.stop()
    await lan.wait_until(lambda: not ben.runs.busy)
    assert ben.phase == Stopped(by="Ben") and anna.runs_a_trainer
    anna.trainers[0].end()
    await lan.wait_until(lambda: anna.over)
    assert isinstance(anna.phase, Finished)


# --- stop -------------------------------------------------------------------------------------------


async def test_three_presses_kill(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    for node in (anna, ben):
        node.trainers[0].stubborn = True
    for _ in range(3):
        anna.runs.stop()
    await wait_over(lan)
    assert anna.trainers[0].forces == ben.trainers[0].forces == [0, 1, 2]
    assert isinstance(anna.phase, Stopped)


async def test_a_member_that_wants_out_does_not_depend_on_the_starter(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    ben.trainers[0].stubborn = True
    anna.runs.on_message = lambda device, message: None  # type: ignore[method-assign]
    for _ in range(3):
        ben.runs.stop()
    lan.clock.advance(6.0)
    await lan.wait_until(lambda: ben.over)
    assert ben.trainers[0].forces == [2]
    lan.lose(anna, ben, CLOSED)
    await lan.wait_until(lambda: "Ben left" in said(anna))
    anna.trainers[0].end()
    await lan.wait_until(lambda: anna.over)
    assert isinstance(anna.phase, Finished)


async def test_a_second_stop_on_a_member_asks_for_more_than_the_starter_began_with(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = both(lan)
    await launch(lan, spec)
    for node in (anna, ben):
        node.trainers[0].stubborn = True
    ben.runs.stop()
    await lan.wait_until(lambda: ben.trainers[0].forces == anna.trainers[0].forces == [1])
    await lan.wait_until(lambda: ben.state.run is not None and isinstance(ben.state.run.phase, Stopping))
    ben.runs.stop()
    await wait_over(lan)
    assert ben.trainers[0].forces == anna.trainers[0].forces == [1, 2]
    assert anna.phase == Stopped(by="Ben")


@pytest.mark.parametrize(
    "broken",
    [
        "core.run.transfer.Delivery.begin",
        "core.run.transfer.Delivery.store",
        "core.run.participant.driver.ParticipantDriver._make_folders",
    ],
    ids=["listing", "storing", "copying"],
)
async def test_a_laptop_that_cannot_make_a_run_ready_is_named_with_the_reason(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(broken, full_disk)
    anna, ben = both(lan)
    await anna.runs.start(spec)
    await wait_over(lan)  # no time passes: a laptop that could not join is free for another run immediately
    assert isinstance(anna.phase, Failed)
    assert "does not take part" in anna.phase.problem.what
    assert not any(node.trainers for node in (anna, ben))
    assert not anna.runs.busy and not ben.runs.busy


@pytest.mark.parametrize(
    "side", ["coordinator.driver.CoordinatorDriver", "participant.driver.ParticipantDriver"]
)
async def test_a_run_that_tandem_itself_breaks_ends_with_the_reason(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """On the starter's own side no link could be lost, so nothing else would end it."""
    anna, ben = both(lan)
    broken: list[Message] = []
    whole = resolve_name(f"core.run.{side}").on_message

    def on_message(driver: CoordinatorDriver | ParticipantDriver, device: DeviceId, message: Message) -> None:
        if not broken and device == driver.context.me == anna.device:
            broken.append(message)
            raise ZeroDivisionError("a bug")
        whole(driver, device, message)

    monkeypatch.setattr(f"core.run.{side}.on_message", on_message)
    await anna.runs.start(spec)
    await lan.wait_until(lambda: "run-work-broke" in anna.notices)
    lan.clock.advance(limits.END_S)  # a trainer that was never started reports no end
    await wait_over(lan)
    assert broken
    assert problem_of(anna) == "run-work-broke"
    assert not isinstance(ben.phase, Finished)


async def test_a_run_that_is_over_leaves_no_timer(lan: Lan, spec: RunSpec) -> None:
    before = {due.number for due in lan.clock.waiting}
    await train(lan, spec)
    for node in lan.nodes.values():
        node.trainers[0].end()
    await wait_over(lan)
    assert {due.number for due in lan.clock.waiting} <= before


async def test_a_full_disk_does_not_end_a_training(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = both(lan)
    await train(lan, spec)
    monkeypatch.setattr("core.history.record.write_atomically", full_disk)
    monkeypatch.setattr("core.history.metrics_file.MetricsFile._write", full_disk)
    for number in range(1, 4):
        lan.clock.advance(1.0)
        anna.trainers[0].make_step(number)
    await lan.wait_until(lambda: anna.notices and ben.notices)
    await finish(lan)
    assert anna.notices == ben.notices == ["record-unwritten"]


async def test_outputs_beside_the_script_that_do_not_fit_into_the_history_fail_no_run(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, _ = both(lan)
    await train(lan, spec)

    def full(*_: object) -> None:
        raise TandemError(code="disk-full", what="The disk is full.", fix="Free some space.")

    monkeypatch.setattr("core.run.coordinator.driver.collect_outputs", full)
    model = Path(spec.script).with_name("model.keras")
    model.write_text("weights")
    keep(anna.trainers[0], "model.keras")
    await finish(lan)
    assert model.read_text() == "weights"
    assert anna.state.run is not None
    assert anna.state.run.summary is not None
    assert anna.state.run.summary.outputs == ("trained/model.keras",)
    words = [each.lines.text for each in anna.events if isinstance(each, ev.MemberLogged)]
    assert "The history keeps no copy of what the script wrote beside itself: The disk is full." in words


async def test_a_model_that_cannot_be_moved_fails_no_run(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, _ = both(lan)
    await anna.runs.start(replace(spec, solo=True))
    await lan.wait_until(lambda: anna.trainers)
    monkeypatch.setattr("core.run.outputs.move_models", full_disk)
    keep(anna.trainers[0], "model.keras")
    anna.trainers[0].end()
    await wait_over(lan)
    assert isinstance(anna.phase, Finished)
    model = Path(anna.trainers[0].train.keep) / "model.keras"
    assert model.read_bytes() == b"trained"
    words = [each.lines.text for each in anna.events if isinstance(each, ev.MemberLogged)]
    assert any(f"in {model.parent}: No space left on device." in each for each in words)


async def test_a_model_that_cannot_be_moved_holds_nothing_else_back(
    lan: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben = both(lan)
    await train(lan, replace(spec, roles={ben.device: (Role.CHIEF,)}))
    monkeypatch.setattr("core.run.outputs.move_models", full_disk)
    (ben.trainers[0].work / "log.csv").write_text("1,2\n")
    keep(ben.trainers[0], "model.keras")
    await finish(lan)
    assert anna.state.run is not None and anna.state.run.summary is not None
    assert anna.state.run.summary.outputs == ("log.csv",)
    words = [each.lines.text for each in anna.events if isinstance(each, ev.MemberLogged)]
    assert any("(No space left on device): it stays on Ben." in each for each in words)
    assert (Path(ben.trainers[0].train.keep) / "model.keras").read_bytes() == b"trained"


async def test_a_script_that_changes_while_it_is_sent(lan: Lan, spec: RunSpec) -> None:
    anna, ben = both(lan)
    question = await ask(lan, spec)
    Path(spec.script).write_text("import keras  # another script by now\n")
    await ben.runs.answer_consent(question.run, "once")
    await lan.wait_until(lambda: anna.over and not ben.runs.busy)
    assert problem_of(anna) == "project-changed"
    assert not anna.runs_a_trainer
    assert not ben.trainers


# --- by what members meet -----------------------------------------------------------------------


async def test_members_over_tls_get_keys_of_this_run_that_are_neither_stored_nor_sent(
    lan: Lan, spec: RunSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    anna, ben = both(lan)
    await train(lan, spec)
    orders = [order for node in (anna, ben) if (order := node.trainers[-1].train.exchange)]
    assert len(orders) == 2
    assert orders[0].certificates == orders[1].certificates
    for rank, order in enumerate(orders):
        RunPair(order.certificates[rank], order.private_key).load_into(
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        )
    plan = anna.state.run.plan  # type: ignore[union-attr]
    assert tuple(task.certificate for task in plan.tasks) == orders[0].certificates
    await finish(lan)
    await lan.wait_until(lambda: not list(tmp_path.glob("*/runs/*/tasks")))  # skip files being removed

    told = repr([node.trainers[-1].train for node in (anna, ben)]) + caplog.text
    told += "".join(wire.to_json(event).decode() for node in (anna, ben) for event in node.events)
    kept = files_under(tmp_path)
    assert len(kept) > 5
    for order in orders:
        secret = order.private_key
        for shape in (secret, secret.hex().encode(), b64encode(secret), b64encode(b"." + secret)[4:-4]):
            assert not any(shape in data for data in kept)
            assert shape not in told.encode()

    await train(lan, spec)
    again = [node.trainers[-1].train.exchange for node in (anna, ben)]
    assert not {each.private_key for each in orders} & {each.private_key for each in again if each}
