"""Scrolling past a combo box, a slider or a number changes none of them, on any screen or in any dialog."""

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QScrollArea,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

import app
from app.conductor import Conductor
from app.views.settings import SettingsView
from app.views.train import TrainView
from app.widgets.inputs import takes_wheel, unscrolled
from app.widgets.navigation import SCREENS, SETTINGS, TRAIN
from core.vocabulary.answers import PlanMade
from tests.app import world
from tests.app.fake_opening import FakeOpening
from tests.core.fake_node import ME, OTHER

LIMIT_MS = 60_000
DIALOGS = ("choose-script", "choose-folder", "save-diagnostics")


def scroll(widget: QWidget, by: int = -120) -> None:
    """One notch of the wheel over it."""
    at = QPointF(widget.rect().center())
    event = QWheelEvent(
        *(at, QPointF(widget.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, by)),
        *(Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False),
    )
    QApplication.sendEvent(widget, event)


def value(field: QWidget) -> object:
    assert isinstance(field, QComboBox | QSlider | QSpinBox)
    return field.currentIndex() if isinstance(field, QComboBox) else field.value()


def set_in_the_middle(field: QWidget) -> None:
    """Sets a value that the wheel could change either way."""
    if isinstance(field, QComboBox):
        field.addItems(["one more", "and one more", "and another"])
        field.setCurrentIndex(1)
    elif isinstance(field, QSlider | QSpinBox):
        field.setValue((field.minimum() + field.maximum()) // 2)


def scroll_past_all(inside: QWidget) -> int:
    """Scrolls past every such field and returns their number; each keeps its value, with and without
    focus."""
    fields = [field for field in inside.findChildren(QWidget) if takes_wheel(field)]
    for field in fields:
        signals = field.blockSignals(True)
        set_in_the_middle(field)
        for focused in (False, True):
            if focused:
                field.setFocus()
            before = value(field)
            for by in (-120, 120, -240):
                scroll(field, by)
            assert value(field) == before, (field.objectName() or field.accessibleName(), focused)
        field.blockSignals(signals)
    return len(fields)


def test_the_wheel_of_this_test_would_change_a_field_of_qts_own(qtbot: QtBot) -> None:
    for made in (QComboBox, QSpinBox, lambda: QSlider(Qt.Orientation.Horizontal)):
        field = made()
        qtbot.addWidget(field)
        set_in_the_middle(field)
        before = value(field)
        scroll(field)
        assert value(field) != before


def test_no_field_of_any_screen_or_dialog_takes_the_wheel(
    qtbot: QtBot, conductor: Conductor, opening: FakeOpening, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = conductor.window
    for event in world.linked():
        opening.happen(event)
    qtbot.waitUntil(lambda: OTHER in conductor.bridge.state.devices, timeout=LIMIT_MS)
    train, settings = window.view(TRAIN), window.view(SETTINGS)
    assert isinstance(train, TrainView)
    assert isinstance(settings, SettingsView)
    made = PlanMade(plan=world.plan(), tf_configs={f"{ME}/chief:0": "{}", f"{OTHER}/worker:0": "{}"})
    train.setup.draft = train.setup.draft.__class__(script="/home/ada/digits/digits.py")
    train.setup._on_read(world.script_read())
    train.setup.made = made
    train.setup._show()
    train.setup.options.head.setChecked(True)
    train.setup.roles.tf_config.head.setChecked(True)
    counted = {}
    for index in range(len(SCREENS)):
        window.go_to(index)
        view = window.view(index)
        assert view is not None
        counted[view.title] = scroll_past_all(view)
    # A role for each of two laptops, strategy and wire, the task of TF_CONFIG, the run's log and plots.
    assert counted["Train"] >= 8
    assert counted["Settings and help"] >= 2
    assert counted["Runs"] >= 2
    assert scroll_past_all(conductor.consent) == scroll_past_all(conductor.pairing) == 0
    asked = {**dict.fromkeys(DIALOGS[:2], train), DIALOGS[2]: settings}
    for name, screen in asked.items():
        screen.findChild(QWidget, name).click()  # type: ignore[union-attr]
        dialog = window.findChild(QFileDialog)
        assert isinstance(dialog, QFileDialog)
        assert scroll_past_all(dialog) > 0, "these are Qt's own dialogs"
        dialog.reject()
        qtbot.waitUntil(lambda: window.findChild(QFileDialog) is None, timeout=LIMIT_MS)
    train.live.charts.export._ask(".csv")
    dialog = window.findChild(QFileDialog)
    assert isinstance(dialog, QFileDialog)
    assert scroll_past_all(dialog) > 0
    dialog.reject()


def test_the_wheel_scrolls_the_page_instead(qtbot: QtBot) -> None:
    area = QScrollArea()
    qtbot.addWidget(area)
    inner = QWidget()
    layout = QVBoxLayout(inner)
    role = unscrolled(QComboBox())
    edit = QLineEdit()
    for each in (edit, role):
        layout.addWidget(each)
    layout.addStretch(1)
    inner.setMinimumHeight(3000)
    area.setWidget(inner)
    area.resize(300, 300)
    area.show()
    edit.setFocus()
    set_in_the_middle(role)
    at = role.mapTo(area, role.rect().center())
    QTest.wheelEvent(area.windowHandle(), QPointF(at), QPoint(0, -120))
    assert role.currentIndex() == 1
    assert area.verticalScrollBar().value() > 0
    assert not role.hasFocus()


def test_every_field_is_made_the_one_way() -> None:
    made = re.compile(r"(?<!\w)(?<!unscrolled\()Q(?:ComboBox|Slider|Dial|SpinBox|DoubleSpinBox)\(")
    found = {
        path.name
        for path in Path(app.__file__).parent.rglob("*.py")
        if made.search(path.read_text(encoding="utf-8"))
    }
    assert not found
    assert not [
        path.name
        for path in Path(app.__file__).parent.rglob("*.py")
        if re.search(r"(?<!\w)QFileDialog\(", path.read_text(encoding="utf-8")) and path.name != "inputs.py"
    ]
