import json
from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app import theme


def test_the_theme_of_the_last_time_is_read_without_the_core(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"theme": "dark"}')
    assert theme.remembered(settings) == "dark"


@pytest.mark.parametrize("text", ["", "[]", '{"theme": 7}', '{"theme": "pink"}', "\xff"])
def test_settings_that_cannot_be_read_follow_the_system(tmp_path: Path, text: str) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(text)
    assert theme.remembered(settings) == "system"


def test_no_settings_follow_the_system(tmp_path: Path) -> None:
    assert theme.remembered(tmp_path / "settings.json") == "system"


def test_texts_grow_with_the_systems_font(qtbot: QtBot, qapp: QApplication) -> None:
    before = qapp.font()
    sizes: list[float] = []
    for points in (9, 18):
        font = qapp.font()
        font.setPointSize(points)
        qapp.setFont(font)
        theme.use("light")
        title = QLabel("408 355")
        qtbot.addWidget(title)
        title.setProperty("kind", "code")
        theme.wear(title)
        title.ensurePolished()
        sizes.append(title.font().pointSizeF())
    qapp.setFont(before)
    theme.use("system")
    assert sizes == [36, 72]


def _contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(colours: theme.Colours) -> None:
    for ground in (colours.window, colours.panel, colours.raised):
        for text in (colours.text, colours.faint, colours.good, colours.warning, colours.bad, colours.accent):
            assert _contrast(text, ground) >= 4.5, (text, ground)
    assert _contrast(colours.on_accent, colours.accent) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_where_something_to_type_or_click_into_begins_can_be_seen(colours: theme.Colours) -> None:
    """WCAG 2.2, 1.4.11: 3 to 1."""
    for ground in (colours.window, colours.panel, colours.raised):
        for edge in (colours.edge, colours.accent):
            assert _contrast(edge, ground) >= 3.0, (edge, ground)
    sheet = theme._sheet(colours, 10.0)
    for kind in (
        "QLineEdit, QComboBox, QSpinBox {",
        'QPushButton[kind="example"] {',
        'QFrame[kind="drop"] {',
    ):
        rule = sheet[sheet.index(kind) :].partition("}")[0]
        assert colours.edge in rule, kind


@pytest.mark.parametrize("name", ["light", "dark"])
def test_twelve_runs_over_each_other_are_seen_and_told_apart(
    qapp: QApplication, name: Literal["light", "dark"]
) -> None:
    theme.use(name)
    shades = [theme.run_colour(place) for place in range(12)]
    ground = theme.colours().panel
    theme.use("system")
    assert len(set(shades)) == 12
    assert all(_contrast(shade, ground) >= 3 for shade in shades), "WCAG's least for graphics"


def test_a_reports_curves_have_the_windows_colours() -> None:
    script = (Path(theme.__file__).parents[1] / "resources" / "report" / "plots.js").read_text()
    for palette in (theme.LIGHT, theme.DARK):
        assert f"curves: {json.dumps(palette.curves)}" in script, palette.name
