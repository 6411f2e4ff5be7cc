import asyncio

import pytest
from msgspec import structs

from app.cli.agent_talk import AgentTalk, Allowed, AllowOptions, allows, is_allowed
from app.cli.prompts import Asker
from app.words import wait_words
from core.project.look import difference
from core.vocabulary import events as ev
from core.vocabulary.access import Grant
from core.vocabulary.answers import Deed, RequestFile, RequestRead
from core.vocabulary.commands import AnswerConsent, AnswerPairing, LookAtRequest
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.phases import Failed, Preparing
from core.vocabulary.settings import Settings
from core.vocabulary.waits import WaitsFor
from tests.app.cli.scripted_node import (
    HARDWARE,
    OTHER,
    PROBLEM,
    RUN,
    THIRD,
    VERSIONS,
    ScriptedNode,
    Words,
    follower,
    paired,
    plan,
)
from tests.app.cli.test_pairing import BEGAN, CODE
from tests.app.cli.test_prompts import Keyboard


def asked(run: RunId = RUN, *, changed: bool = False) -> ev.ConsentAsked:
    files = tuple(ProjectFile(path=f"file{number:02}.py", size=1000, sha256="0" * 64) for number in range(12))
    return ev.ConsentAsked(
        run=run,
        device=OTHER,
        name="other",
        project=ProjectId("d" * 64),
        script="digits.py",
        arguments=("--epochs", "3\x1b[2J"),
        files=files,
        changed=changed,
    )


class Talking:
    """An agent on a terminal with a keyboard."""

    def __init__(self, *allowed: str) -> None:
        self.node = ScriptedNode()
        self.node.happen(paired())
        self.screen = Words()
        self.keyboard = Keyboard()
        self._allowed = allowed

    async def __aenter__(self) -> "Talking":
        self._follower = follower(self.node).__enter__()
        self._asker = await Asker(self.screen, self.keyboard).__aenter__()
        talk = AgentTalk(self._follower, self._asker, self.screen, AllowOptions(self._allowed, True))
        self._task = asyncio.create_task(talk.run())
        await self.screen.wait_said("is ready at 192.168.1.2:27600")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.node.happen(ev.NodeStopped())
        with pytest.raises(TandemError, match="ended from elsewhere"):
            await self._task
        await self._asker.__aexit__(None, None, None)
        self._follower.__exit__(None, None, None)


async def test_a_pairing_is_asked_about() -> None:
    async with Talking() as talking:
        talking.node.happen(
            ev.PairingBegan(incoming=True, name="other", address="192.168.1.3:1", device=OTHER)
        )
        talking.node.happen(CODE)
        await talking.screen.wait_said("same code?")
        talking.keyboard.types("same\n")
        await talking.node.wait_command(AnswerPairing(same=True))
        talking.node.happen(ev.PairingEnded(device=OTHER))
        await talking.screen.wait_said("Paired with other.")
    assert "other at 192.168.1.3:1 wants to pair." in talking.screen.said
    assert "408 355" in talking.screen.said


async def test_a_pairing_that_ends_takes_its_question_away() -> None:
    async with Talking() as talking:
        talking.node.happen(BEGAN)
        talking.node.happen(CODE)
        await talking.screen.wait_said("same code?")
        talking.node.happen(ev.PairingEnded(device=OTHER, problem=PROBLEM))
        await talking.screen.wait_said("It did not work.")
        talking.keyboard.types("same\n")
        talking.node.happen(asked())
        await talking.screen.wait_said("May other run this here?")
        talking.keyboard.types("no\n")
        await talking.node.wait_command(AnswerConsent(run=RUN, decision="no"))
    assert AnswerPairing(same=True) not in talking.node.commands


async def test_a_run_is_asked_about_with_everything_that_matters() -> None:
    async with Talking() as talking:
        differs = {"digits.keras": "new", "lib/model.py": "changed", "old.csv": "gone"}
        talking.node.happen(structs.replace(asked(changed=True), differs=differs))
        await talking.screen.wait_said("May other run this here?")
        talking.keyboard.types("always\n")
        await talking.node.wait_command(AnswerConsent(run=RUN, decision="always"))
        talking.node.happen(ev.ConsentSettled(run=RUN, allowed=True))
        await talking.screen.wait_said("is allowed here")
    said = talking.screen.said
    assert "other (bbbbbbbb) wants to run digits.py --epochs '3⟨U+001B⟩[2J' on this laptop." in said
    assert "It differs from what was allowed here before. Changed: lib/model.py. New: digits.keras." in said
    assert "No longer there: old.csv." in said
    assert "this one can do anything you can do on this laptop." in said
    assert "12 files, 12,000 bytes, project dddddddd:" in said
    assert "and 2 more" in said
    assert "\x1b" not in said


async def test_what_hides_in_an_argument_or_a_files_name_is_spelled_out_and_nothing_is_cut() -> None:
    file = ProjectFile(path="tr\u202eyp.nia", size=1, sha256="a" * 64)
    arguments = ("--out=\u200b/etc", "a\nb", "b c", "a" * 5_000 + " --end")
    question = structs.replace(asked(), arguments=arguments, files=(file,))
    async with Talking() as talking:
        talking.node.happen(question)
        await talking.screen.wait_said("May other run this here?")
    said = talking.screen.said
    assert "'--out=⟨U+200B⟩/etc' 'a⟨U+000A⟩b' 'b c' 'aaa" in said and "aaa --end' on this laptop." in said
    assert "tr⟨U+202E⟩yp.nia" in said and "\u202e" not in said


async def test_all_arguments_of_a_sweep_are_shown() -> None:
    sets = (("--lr", "0.1"), ("--lr", "a\u200bb c"), ())
    async with Talking() as talking:
        talking.node.happen(structs.replace(asked(), arguments=sets[0], argument_sets=sets))
        await talking.screen.wait_said("May other run this here?")
    said = talking.screen.said
    assert (
        "wants to run digits.py on this laptop.\nIt will be run with 3 sets of arguments, one after another:"
        in said
    )
    assert "\n  --lr 0.1\n  --lr 'a⟨U+200B⟩b c'\n  (none)\n" in said


async def test_a_name_that_passes_for_another_is_marked() -> None:
    async with Talking() as talking:
        talking.node.happen(ev.DevicePaired(device=DeviceId("c" * 64), name="\u043ether"))
        talking.node.happen(asked())
        await talking.screen.wait_said("May other run this here?")
    assert "Careful: other looks like the name of another laptop here, \u043ether." in talking.screen.said


async def test_a_checkpoint_that_comes_too_is_said() -> None:
    async with Talking() as talking:
        talking.node.happen(structs.replace(asked(), checkpoint_bytes=70_000))
        await talking.screen.wait_said("resumes from a checkpoint of 70,000 bytes")


async def test_the_files_can_be_looked_at_before_the_answer() -> None:
    diff = difference("train.py", "epochs = 5", "epochs = [50]")
    files = (
        RequestFile(
            path="train.py",
            size=13,
            change="changed",
            text="epochs = [50]",
            diff=diff,
            deeds=(Deed(kind="starts", what="os.system x", line=7, marked=True),),
        ),
        RequestFile(path="model.py", size=9, change="new", text="layers = 3"),
        RequestFile(path="rows.npz", size=5_000, change="new"),
        RequestFile(path="same.py", size=9, change="same", text="never shown"),
    )
    async with Talking() as talking:
        talking.node.answers[LookAtRequest] = RequestRead(run=RUN, files=files)
        talking.node.happen(asked())
        await talking.screen.wait_said("[once/always/no/look]")
        talking.keyboard.types("look\n")
        await talking.node.wait_command(LookAtRequest(run=RUN))
        await talking.screen.wait_said("(not text, or too large to send before the yes)")
        talking.keyboard.types("no\n")
        await talking.node.wait_command(AnswerConsent(run=RUN, decision="no"))
    said = talking.screen.said
    assert "Starts: os.system x (line 7)\nNot checked, read it yourself: model.py, same.py" in said
    assert "--- train.py, 13 bytes: changed since you allowed it" in said
    assert "-epochs = 5\n+epochs = [50]" in said
    assert "--- model.py, 9 bytes: new\nlayers = 3" in said
    assert "never shown" not in said


async def test_without_anybody_to_ask_the_answer_is_no() -> None:
    async with Talking() as talking:
        talking.keyboard.types("")
        talking.node.happen(asked())
        await talking.node.wait_command(AnswerConsent(run=RUN, decision="no"))
    assert "Use --allow DEVICE" in talking.screen.said


async def test_a_device_named_with_allow_is_not_asked_about() -> None:
    async with Talking("other") as talking:
        with Allowed(talking.node, AllowOptions(("other",), True)):
            talking.node.happen(asked())
            await talking.node.wait_command(AnswerConsent(run=RUN, decision="once"))
            await talking.screen.wait_said("was named with --allow")
    assert "May other" not in talking.screen.said


async def test_why_a_run_failed_is_said_with_its_mend() -> None:
    """The person at this terminal may have lent the laptop and see no other screen."""
    why = Problem(
        code="script-error",
        what="On other: ValueError: no.",
        fix="Correct the script.",
        detail="line 1\nline 2",
    )
    async with Talking() as talking:
        talking.node.happen(ev.RunPlanned(plan=plan(OTHER)))
        talking.node.happen(ev.RunPhaseChanged(run=RUN, phase=Preparing()))
        talking.node.happen(ev.RunPhaseChanged(run=RUN, phase=Failed(problem=why)))
        await talking.screen.wait_said("line 2")
    said = talking.screen.said
    assert (
        said.index("failed\n") < said.index("On other: ValueError: no.") < said.index("Correct the script.")
    )


async def test_a_wait_is_printed_on_the_agents_terminal_too() -> None:
    wait = WaitsFor(device=OTHER, cause="stopped", lasted_s=4.0)
    async with Talking() as talking:
        talking.node.happen(ev.RunPlanned(plan=plan(OTHER)))
        talking.node.happen(ev.WaitingChanged(run=RUN, waits=(wait,)))
        talking.node.happen(ev.WaitingChanged(run=RUN))
        await talking.screen.wait_said(wait_words.GOES_ON)
    assert "Waiting for other: its training process has been stopped for 4 s." in talking.screen.said


async def test_links_are_said_but_those_with_laptops_that_are_only_in_the_same_run() -> None:
    async with Talking() as talking:
        for device in (THIRD, OTHER):
            up = ev.LinkUp(
                device=device, name=device[:4], address="10.0.0.1:1", versions=VERSIONS, hardware=HARDWARE
            )
            talking.node.happen(up)
            talking.node.happen(ev.LinkDown(device=device, problem=PROBLEM))
        await talking.screen.wait_said(f"{OTHER[:4]}: It did not work.")
    assert f"Connected with {OTHER[:4]}." in talking.screen.said
    assert THIRD[:4] not in talking.screen.said


def test_allow_means_one_paired_device_and_no_namesake() -> None:
    node = ScriptedNode()
    node.happen(ev.DeviceFound(device=OTHER, name="other", addresses=()))
    assert not allows(node.state, ("other",), OTHER)
    node.happen(paired())
    assert allows(node.state, ("x", "other"), OTHER)
    assert allows(node.state, ("bbbbbbbb",), OTHER)
    assert not allows(node.state, ("other",), THIRD)
    node.happen(paired(THIRD, "other"))
    assert not allows(node.state, ("other",), OTHER)
    assert not allows(node.state, ("other",), THIRD)


MORE = structs.replace(
    asked(), walls="default", opened=(Grant(asked="~/Pictures", path="/home/me/Pictures"),)
)


async def test_what_lies_beyond_the_walls_is_asked_on_the_terminal_though_the_device_is_allowed() -> None:
    async with Talking("other") as talking:
        talking.node.happen(MORE)
        await talking.screen.wait_said("May other run this here?")
        assert "Read ~/Pictures (/home/me/Pictures)" in talking.screen.said
        talking.keyboard.types("once\n")
        await talking.node.wait_command(AnswerConsent(run=RUN, decision="once"))
    assert "was named with --allow" not in talking.screen.said


def test_allow_answers_for_a_data_folder_of_this_laptop() -> None:
    node = ScriptedNode()
    node.happen(paired())
    opened = Grant(asked="~/photos", path="/mnt/photos")
    for data, write, allowed in (
        ("/mnt/photos", False, True),
        ("/mnt/photos", True, False),
        ("/mnt", False, False),
    ):
        node.happen(ev.SettingsChanged(settings=Settings(data={"photos": data})))
        question = structs.replace(asked(), opened=(structs.replace(opened, write=write),))
        assert is_allowed(question, node.state, AllowOptions(("other",), True)) is allowed


def test_without_walls_allow_answers_only_where_that_was_said() -> None:
    node = ScriptedNode()
    node.happen(paired())
    for walls, without_walls, allowed in (
        ("default", False, True),
        ("none", True, True),
        ("none", False, False),
    ):
        question = structs.replace(asked(), walls=walls)
        assert is_allowed(question, node.state, AllowOptions(("other",), without_walls)) is allowed


async def test_without_a_screen_allow_answers_for_the_walls_alone() -> None:
    node = ScriptedNode()
    node.happen(paired())
    with Allowed(node, AllowOptions(["other"])):
        node.happen(MORE)
        node.happen(structs.replace(asked(RunId("without")), walls="none"))
        node.happen(structs.replace(asked(RunId("within")), walls="default"))
        await node.wait_command(AnswerConsent(run=RunId("within"), decision="once"))
    assert len(node.commands) == 1
