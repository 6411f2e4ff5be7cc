"""*Have the same here…*: the question, the build, stopping it, and the offer afterwards."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.widgets import environment_card
from app.widgets.environment_card import EnvironmentCard, Looked
from core.environment.make import version_output
from core.environment.recipe import Recipe, RecipeStep, WantedVersions, recipe
from core.vocabulary import environments
from core.vocabulary.environments import EnvironmentMaker
from core.vocabulary.errors import Problem
from core.vocabulary.versions import installed
from tests.core.environment.tiny_tandem import wheel

LIMIT_MS = 120_000
OURS = installed()
WANTED = WantedVersions(OURS.python, "2.21.0", "3.15.1")
PROBLEM = Problem(code="oh", what="It went wrong.", fix="Mend it.", detail="first\nlast line of pip")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A tiny Tandem's environment, made by this Python and its pip."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    maker = EnvironmentMaker(source=wheel(tmp_path))
    return replace(
        recipe(maker, WANTED, OURS, folder=tmp_path / "made", hashes=tmp_path / "none"), disk_bytes=0
    )


def card_of(qtbot: QtBot, *looked: Looked | Problem) -> EnvironmentCard:
    """``looked``: the finding of each look; the last one repeats."""
    found = list(looked)
    card = EnvironmentCard(lambda wanted: found.pop(0) if len(found) > 1 else found[0])
    qtbot.addWidget(card)
    return card


def ask(qtbot: QtBot, card: EnvironmentCard) -> None:
    card.ask(WANTED)
    qtbot.waitUntil(lambda: "Looking" not in card.words.text(), timeout=LIMIT_MS)


def test_it_says_what_it_would_do_and_does_nothing_before_the_yes(qtbot: QtBot, made: Recipe) -> None:
    card = card_of(qtbot, (made, ""))
    assert card.isHidden()
    ask(qtbot, card)
    assert card.head.text().startswith(f"Tandem with Python {OURS.python}, TensorFlow 2.21.0")
    said = card.words.text().replace("\u200b", "")
    assert "839 MB" in said and "made" in said and not card.make.isHidden()
    assert card.log.toPlainText() == "\n".join(map(str, made.steps))
    assert not made.folder.exists() and not card.under_way
    card.leave.click()
    assert card.isHidden()


@pytest.mark.real
def test_it_is_made_beside_the_window_and_ends_with_the_offer_to_go_over(qtbot: QtBot, made: Recipe) -> None:
    card = card_of(qtbot, (made, ""))
    ask(qtbot, card)
    lines: list[str] = []
    card.log.textChanged.connect(lambda: lines.append(card.log.toPlainText()))
    card.make.click()
    assert card.under_way and not card.stop.isHidden()
    card.ask(WantedVersions("3.13"))
    assert card.head.text().startswith("Making Tandem"), "the one that is under way goes on"
    qtbot.waitUntil(lambda: not card.restart.isHidden(), timeout=LIMIT_MS)
    assert any("Successfully installed" in text for text in lines)
    assert card.head.text().startswith("Ready: Tandem 0.1.0") and version_output(made)
    assert "pip install NAME" in card.hint.text().replace("\u200b", "")
    with qtbot.waitSignal(card.restart_asked) as asked:
        card.restart.click()
    assert asked.args == [made.tandem]


@pytest.mark.real
def test_stop_leaves_nothing_and_asks_again(qtbot: QtBot, made: Recipe) -> None:
    endless = (sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(600)")
    made = replace(made, steps=(RecipeStep("Working", endless), made.steps[-1]))
    card = card_of(qtbot, (made, ""))
    ask(qtbot, card)
    card.make.click()
    qtbot.waitUntil(lambda: card.log.toPlainText().endswith("begun"), timeout=LIMIT_MS)
    assert made.folder.exists()
    card.stop.click()
    qtbot.waitUntil(lambda: not card.make.isHidden(), timeout=LIMIT_MS)
    assert not made.folder.exists() and not card.under_way


@pytest.mark.real
def test_with_the_window_it_ends_and_nothing_half_made_stays(qtbot: QtBot, made: Recipe) -> None:
    many = "[open(f'{n}', 'w').close() for n in range(5000)]; print('begun', flush=True)"
    endless = (sys.executable, "-c", f"{many}; import time; time.sleep(600)")
    card = card_of(qtbot, (replace(made, steps=(RecipeStep("Working", endless),)), ""))
    ask(qtbot, card)
    card.make.click()
    qtbot.waitUntil(lambda: card.log.toPlainText().endswith("begun"), timeout=LIMIT_MS)
    assert (made.folder / "4999").exists()
    card.end()
    assert not made.folder.exists(), "the program ends next, and its threads with it"
    qtbot.waitUntil(lambda: not card.under_way, timeout=LIMIT_MS)


def test_a_look_that_comes_late_does_not_change_what_was_asked_since(qtbot: QtBot, made: Recipe) -> None:
    slow, late = threading.Event(), WantedVersions("3.12")
    looked: list[WantedVersions] = []

    def look(wanted: WantedVersions) -> Looked:
        if wanted == late:
            slow.wait(LIMIT_MS / 1000)
        looked.append(wanted)
        return replace(made, wanted=wanted), "Tandem 0.1.0" if wanted == late else ""

    card = EnvironmentCard(look)
    qtbot.addWidget(card)
    card.ask(late)
    ask(qtbot, card)
    slow.set()
    qtbot.waitUntil(lambda: looked == [WANTED, late], timeout=LIMIT_MS)
    qtbot.wait(50)
    assert card.head.text() == f"Tandem with {WANTED}" and not card.make.isHidden()
    assert card.restart.isHidden()


@pytest.mark.real
def test_what_fails_is_reported_with_its_mend_and_can_be_tried_again(qtbot: QtBot, made: Recipe) -> None:
    fails = replace(made, disk_bytes=1 << 60)
    card = card_of(qtbot, (fails, ""), PROBLEM)
    ask(qtbot, card)
    card.make.click()
    qtbot.waitUntil(lambda: not card.again.isHidden(), timeout=LIMIT_MS)
    assert card.problem.problem is not None and card.problem.problem.code == "environment-no-space"
    card.again.click()
    qtbot.waitUntil(lambda: card.problem.problem == PROBLEM, timeout=LIMIT_MS)
    assert card.log.toPlainText() == PROBLEM.detail


def test_one_that_is_there_already_is_offered_at_once(qtbot: QtBot, made: Recipe) -> None:
    card = card_of(qtbot, (made, "Tandem 0.1.0 (Python 3.12)"))
    card.show_may_restart(own=True, busy=False, home="/my home")
    ask(qtbot, card)
    assert card.make.isHidden() and not card.restart.isHidden()
    card.copy.click()
    assert QGuiApplication.clipboard().text() == made.start(home="/my home")


def test_nobody_goes_over_in_the_middle_of_a_run_or_under_an_agent(qtbot: QtBot, made: Recipe) -> None:
    card = card_of(qtbot, (made, "Tandem 0.1.0 (Python 3.12)"))
    card.show_may_restart(own=True, busy=True)
    assert not card.restart.isEnabled() and "A run is under way" in card.restart.toolTip()
    card.show_may_restart(own=False, busy=False)
    ask(qtbot, card)
    assert not card.restart.isEnabled() and "end it" in card.hint.text()
    card.show_may_restart(own=True, busy=False)
    assert card.restart.isEnabled()


def test_this_laptop_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maker = EnvironmentMaker(
        checkout=str(tmp_path), source=str(tmp_path), pythons={"3.12": "/usr/bin/python3.12"}
    )
    monkeypatch.setattr(environments, "find_maker", lambda: maker)
    found = environment_card.look_here(WantedVersions("3.12" if OURS.python != "3.12" else "3.13"))
    assert not isinstance(found, Problem) and found[1] == ""
    refused = environment_card.look_here(WantedVersions("3.14"))
    assert isinstance(refused, Problem) and refused.code == "environment-no-such-python"
