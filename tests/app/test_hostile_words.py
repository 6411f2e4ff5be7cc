"""Deceptive names and texts from a peer: whatever it sends, screens show it as words and keep their
layout."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtGui import Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.system.tray import _clean
from app.views.consent import ConsentSheet
from app.views.devices import DevicesView
from app.views.machines import MachinesView
from app.views.pairing import PairingSheet
from app.views.runs import RunsView
from app.views.settings import SettingsView
from app.views.train import TrainView
from app.views.welcome import WelcomeView
from app.widgets.canvas import Illustration
from app.widgets.labels import ElidedLabel, Label
from app.widgets.navigation import ScreenEntry
from app.window import Window
from core.vocabulary import events as ev
from core.vocabulary.answers import Finding, PlanMade, RunList, ScriptRead
from core.vocabulary.commands import AnalyseScript, GetRun, ListRuns, PlanRun
from core.vocabulary.errors import Problem
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.phases import Failed
from core.vocabulary.progress import Summary
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.laptops import BEN, code_shown, consent_asked, linked, pairing_began
from tests.app.seat import on_screen
from tests.core.fake_node import ME, OTHER, started

LURES = [
    "<img src='file:///etc/passwd'>",
    "<a href='http://x'>Allow</a>",
    "<h1>Same</h1>",
    "&lt;b&gt;",
    "a\u202egnp.exe",
    "\x1b]0;title\x07\x1b[2J",
    "\u2066\u2067\u200f",
    "line\nline\r\n\tline",
    "x" * 5_000,
    "漢字" * 400,
    "a\u0301" * 300,
    "%s%n{0}{}",
    "&Forget &Same",
    "",
    " ",
    "👨‍👩‍👧‍👦" * 50,
    "ﷺ" * 100,
]
WORDS = st.one_of(
    st.sampled_from(LURES),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.builds(lambda one, other: one + other, st.sampled_from(LURES), st.text(max_size=20)),
)
FORBIDDEN = {"Cc", "Cf", "Co", "Cn"}


class Screens:
    """All screens that show a peer's words, in a window of minimum size."""

    def __init__(self) -> None:
        self.bridge = Bridge()
        self.core = FakeCore(self.bridge)
        self.core.happen(started())
        self.window = Window((ScreenEntry("Devices", "devices"), ScreenEntry("Settings", "settings")))
        self.window.may_close = True
        self.devices = DevicesView(self.bridge)
        self.settings = SettingsView(self.bridge, lambda wanted: None)
        self.welcome = WelcomeView(self.bridge)
        over = self.window.sheet_parent()
        self.pairing = PairingSheet(self.bridge, over)
        self.consent = ConsentSheet(self.bridge, over)
        self.window.fill(0, self.devices, self.bridge.state)
        self.window.fill(1, self.settings, self.bridge.state)
        self.bridge.changed.connect(lambda events, state: self.window.show_state(state, events))
        self.bridge.changed.connect(lambda events, state: self.welcome.show_state(state, events))
        self.bridge.changed.connect(lambda events, state: self.pairing.show_state(state, events))
        self.bridge.changed.connect(lambda events, state: self.consent.show_state(state))
        self.window.resize(self.window.minimumSize())
        self.window.show()

    def all(self) -> Iterator[QWidget]:
        for top in (self.window, self.welcome):
            yield from top.findChildren(QWidget)


@pytest.fixture(scope="module")
def screens(qapp: object) -> Iterator[Screens]:
    screens = Screens()
    yield screens
    screens.window.close()
    screens.window.deleteLater()
    screens.welcome.deleteLater()


@settings(
    max_examples=30,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=WORDS, nickname=WORDS, words=WORDS, path=WORDS)
def test_whatever_a_peer_sends_stays_words(
    screens: Screens, name: str, nickname: str, words: str, path: str
) -> None:
    problem = Problem(code="hostile", what=words, fix=words, detail=words)
    asked = consent_asked(name=name, script=path)
    core = screens.core
    core.happen(
        ev.DeviceFound(device=BEN, name=name, addresses=(words[:100],)),
        ev.DevicePaired(device=BEN, name=name, nickname=nickname),
        replace(linked(problem=problem), name=name),
        ev.NoticeRaised(problem=problem),
    )
    core.happen(pairing_began(incoming=True, name=name), code_shown(name=name, warning=problem))
    core.happen(
        replace(asked, arguments=(words, path), files=(ProjectFile(path=path, size=1, sha256="a" * 64),))
    )
    screens.settings.help.findings.show_findings(
        [Finding(code="x", topic="network", level="error", what=words)]
    )
    screens.settings.help.show_problem(problem)
    screens.devices.grab()

    for widget in screens.all():
        check(widget)
    assert screens.window.minimumSizeHint().width() <= screens.window.width()
    assert screens.pairing.card.minimumSizeHint().width() <= screens.window.width()
    assert screens.consent.card.minimumSizeHint().width() <= screens.window.width()

    core.happen(ev.PairingEnded(device=BEN, problem=problem))
    core.happen(ev.ConsentSettled(run=asked.run, allowed=False), ev.DeviceForgotten(device=BEN))
    core.happen(ev.DeviceGone(device=BEN))
    screens.pairing.dismiss()


@settings(
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(words=WORDS, other=WORDS, number=st.floats(allow_nan=True, allow_infinity=True))
def test_whatever_a_run_has_stays_words(qtbot: QtBot, words: str, other: str, number: float) -> None:
    problem = Problem(code="hostile", what=words, fix=other, detail=words)
    summary = Summary(last_logs={words: number}, outputs=(words,), strategy=words)
    entry = world.entry(script=words, source=words, last=Failed(problem=problem), devices=(other,))
    entry = replace(entry, folder=words, summary=summary, started_s=number, duration_s=None)
    bridge = Bridge()
    core = FakeCore(bridge)
    core.answers = {
        AnalyseScript: ScriptRead(
            script=words[:60],
            folder=other[:60],
            kind="own",
            strategies=(words,),
            mistakes=(problem,),
            skipped=(words,),
        ),
        PlanRun: PlanMade(plan=world.plan(), expectation=words, tf_configs={f"{ME}/{other}": words}),
        ListRuns: RunList(runs=(entry,)),
        GetRun: world.details(entry, steps=3),
    }
    core.happen(started(), *world.linked(words, problem=problem))
    train, runs, machines = TrainView(bridge), RunsView(bridge), MachinesView(bridge)
    for view in (train, runs, machines):
        on_screen(qtbot, bridge, view)
    core.flush()
    odd = world.reading(0.0, gpus=(world.gpu(number, words),), no_gpu=words)
    core.happen(world.told(OTHER, odd))
    train.choose(words)
    core.flush()
    train.setup._settle.stop()
    train.setup._plan()
    core.flush()
    train.setup.edited = False
    core.happen(*world.begun(world.plan(script=words, arguments=(other,))))
    progress = replace(world.progress(0), logs={words: number})
    core.happen(world.progressed(ME, progress), world.logged(ME, words))
    train.live.log.head.click()
    core.happen(*world.finished(last=Failed(problem=problem)))
    runs.table.selectRow(0)
    runs.open.click()
    core.flush()
    for view in (train, runs, machines):
        view.grab()
        for widget in view.findChildren(QWidget):
            check(widget)
        view.hide()


def check(widget: QWidget) -> None:
    if isinstance(widget, QLabel) and not isinstance(widget, Illustration):
        assert widget.textFormat() == Qt.TextFormat.PlainText, widget.text()
    if isinstance(widget, Label | ElidedLabel):
        said = widget.text().replace("\u200b", "")  # where a label may break a long word
        assert not {unicodedata.category(char) for char in said} & FORBIDDEN
    tip = widget.toolTip()
    if tip and Qt.mightBeRichText(tip):
        inner = tip.removeprefix("<p>").removesuffix("</p>")
        assert inner == html.escape(html.unescape(inner)), "a tooltip's words are escaped"


@given(WORDS)
@settings(max_examples=100, deadline=None, database=None)
def test_a_notice_of_the_desktop_carries_no_markup(words: str) -> None:
    cleaned = _clean(words)
    assert not set(cleaned) & set("<>&")
    assert len(cleaned) <= 200


def test_the_lures_would_be_markup_if_they_were_let(qtbot: QtBot) -> None:
    """Ensures that the property above has something to find."""
    assert Qt.mightBeRichText(LURES[0])
    label = QLabel(LURES[0])
    qtbot.addWidget(label)
    assert label.textFormat() != Qt.TextFormat.PlainText
