"""Two nodes ask each other for modules: links in memory, real disks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.link.questions import Questions
from core.run.context import RunLimits
from core.run.modules import HERE, Lack, Modules, check_here, missing
from core.runtime.background import Background
from core.script.needs import Needs
from core.script.syntax import Usage
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import MODULES_ASKED, Message, ModulesAsked, ModulesTold
from tests.core.cluster.laptops import ANNA, BEN

NEEDS = Needs(
    surely=(
        Usage(path="train.py", line=3, what="surely_nowhere"),
        Usage(path="a.py", line=1, what="msgspec"),
    ),
    maybe=(Usage(path="a.py", line=9, what="perhaps_nowhere"),),
)
UNSURE = Needs(maybe=NEEDS.maybe)
PIP = "/venv/bin/python -m pip install"


class Side:
    """One laptop; its messages arrive at ``other`` on the next turn of the loop, if there is one."""

    def __init__(self, me: DeviceId, limit_s: float = 30.0) -> None:
        self.me = me
        self.other: Side | None = None
        self.sent: list[Message] = []
        self.broke: list[BaseException] = []
        background = Background(lambda name, error: self.broke.append(error))
        limits = RunLimits(modules_s=limit_s)
        context = SimpleNamespace(me=me, links=self, background=background, limits=limits)
        self.questions = Questions(self.send)
        self.modules = Modules(cast(Any, context))

    def send(self, device: DeviceId, message: Message) -> bool:
        self.sent.append(message)
        if self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.arrive, self.me, message)
        return True

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None:
        return await self.questions.ask(device, question, limit_s)

    def arrive(self, device: DeviceId, message: Message) -> None:
        if not self.questions.on_message(device, message):
            assert isinstance(message, ModulesAsked)
            self.modules.on_asked(device, message)


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    anna, ben = Side(ANNA), Side(BEN)
    anna.other, ben.other = ben, anna
    yield anna, ben
    assert not anna.broke and not ben.broke


async def test_modules_missing_on_another_laptop_are_named_with_its_own_command(
    sides: tuple[Side, Side],
) -> None:
    anna, ben = sides
    with pytest.raises(TandemError) as caught:
        await anna.modules.check(NEEDS, {BEN: "ben"}, here=False)
    told = caught.value
    assert told.code == "modules-missing"
    assert told.what == (
        "surely_nowhere is missing on ben: the script imports surely_nowhere in train.py, line 3."
    )
    assert told.fix == f"On ben, install it with `{told.problem.command}`."
    assert told.problem.command.endswith(" surely-nowhere")
    assert told.problem.command_on == "ben"
    assert told.problem.installs == (BEN,)
    (answer,) = ben.sent
    assert isinstance(answer, ModulesTold) and set(answer.missing) == {"surely_nowhere", "perhaps_nowhere"}


async def test_modules_missing_here_as_well_are_named_once(sides: tuple[Side, Side]) -> None:
    with pytest.raises(TandemError) as caught:
        await sides[0].modules.check(NEEDS, {BEN: "ben"})
    assert caught.value.what.startswith("surely_nowhere is missing on ben (and here): ")
    assert caught.value.fix.index("On ben, install it") < caught.value.fix.index("Here, install it")
    assert caught.value.problem.command == "", "one for each laptop"
    assert caught.value.problem.command_on == ""
    assert caught.value.problem.installs == (BEN, ANNA)
    assert sides[0].modules.installs.lacking == dict.fromkeys((BEN, ANNA), ("surely-nowhere",))


async def test_modules_that_may_not_be_imported_are_a_warning(sides: tuple[Side, Side]) -> None:
    (warning,) = await sides[0].modules.check(UNSURE, {BEN: "ben"})
    assert warning.what == (
        "perhaps_nowhere is missing on ben (and here): the script imports perhaps_nowhere in a.py, line 9, "
        "though perhaps not in every run."
    )


async def test_modules_that_everybody_has_are_not_mentioned(sides: tuple[Side, Side]) -> None:
    anna, ben = sides
    found = Needs(surely=NEEDS.surely[1:])
    assert await anna.modules.check(found, {BEN: "ben"}) == ()
    assert await anna.modules.check(Needs(), {BEN: "ben"}) == ()
    await asyncio.sleep(0)
    assert [type(message) for message in anna.sent] == [ModulesAsked, ModulesAsked]
    assert len(ben.sent) == 1, "where nothing is imported, it only says that a run is being prepared"


async def test_a_laptop_that_does_not_answer_keeps_nobody_waiting() -> None:
    anna = Side(ANNA, limit_s=0.01)
    assert await anna.modules.check(UNSURE, {BEN: "ben"}, here=False) == ()
    (asked,) = anna.sent
    assert isinstance(asked, ModulesAsked)
    late = ModulesTold(question=asked.question, missing=("perhaps_nowhere",))
    assert not anna.questions.on_message(BEN, late)


@pytest.mark.parametrize(
    "modules",
    [("os; rm",), ("../core",), ("",), ("a" * 101,), ("x",) * (MODULES_ASKED + 1)],
    ids=["shell", "path", "empty", "long", "many"],
)
async def test_a_malformed_question_is_not_answered(
    modules: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    ben = Side(BEN)
    with caplog.at_level(logging.WARNING):
        ben.modules.on_asked(ANNA, ModulesAsked(question=1, modules=modules))
    assert "not answered" in caplog.text
    await asyncio.sleep(0)
    assert ben.sent == []


def test_the_sentence_for_several_modules_and_laptops() -> None:
    usages = tuple(
        Usage(path="t.py", line=line, what=what) for line, what in enumerate(("pandas", "cv2", "mine"))
    )
    lacks = (
        Lack("ben", frozenset(["cv2", "pandas"]), PIP),
        Lack("fay", frozenset(["mine"]), PIP),
        Lack(HERE, frozenset(["pandas"]), ""),
    )
    known = {"pandas": "pandas==2.3.1", "cv2": "opencv-python-headless", "mine": ""}
    problem = missing(usages, lacks, sure=True, requirement=known.__getitem__)
    assert problem.what == (
        "pandas and cv2 are missing on ben; mine is missing on fay; pandas is missing here: the script "
        "imports pandas in t.py, line 0."
    )
    assert problem.fix == (
        f"On ben, install them with `{PIP} pandas==2.3.1 opencv-python-headless`. "
        "mine is in a folder of this laptop: put it beside the script, so that it is sent along, or install "
        "it on fay as well. "
        "Here, Tandem was installed as a program with its own Python, which cannot be extended: install "
        "Tandem with pip or pipx instead, together with pandas==2.3.1."
    )


def test_a_single_member_learns_what_is_missing_here() -> None:
    check_here(UNSURE)
    with pytest.raises(TandemError, match="surely_nowhere is missing here: ") as caught:
        check_here(NEEDS)
    assert caught.value.fix.startswith("Here, install it with `")
