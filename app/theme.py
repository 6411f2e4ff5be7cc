"""Colours and spacing, light and dark. Sizes follow the system's font; no text size is in pixels."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet, ref

from PySide6.QtCore import QTimer
from PySide6.QtGui import QColor, QFontInfo, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory, QWidget
from shiboken6 import isValid

if TYPE_CHECKING:
    from core.vocabulary.settings import Theme

GAP = 12
"""Pixels between things that belong together; twice that between groups."""


LAPTOPS_FROM = 2
"""The first curve colour that stands for a laptop; earlier ones are training and validation."""


class Colours(NamedTuple):
    """``line`` separates parts of a group; ``edge`` outlines fields and buttons (WCAG 2.2, 1.4.11).
    ``curves``: distinguishable with colour vision deficiencies (Okabe and Ito's set)."""

    name: str
    window: str
    panel: str
    raised: str
    line: str
    edge: str
    text: str
    faint: str
    accent: str
    on_accent: str
    good: str
    warning: str
    bad: str
    curves: tuple[str, ...]


_ICONS = Path(__file__).parents[1] / "resources" / "icons"
_used: Theme | None = None
_wearers: WeakSet[QWidget] = WeakSet()
_changing: list[ref[QWidget]] = []
"""Widgets that still wear the previous theme."""

LIGHT = Colours(
    name="light",
    window="#f4f5f7",
    panel="#ffffff",
    raised="#eceef2",
    line="#d5d9e0",
    edge="#7f8898",
    text="#1d2330",
    faint="#5c6575",
    accent="#2457d6",
    on_accent="#ffffff",
    good="#16703f",
    warning="#8a5700",
    bad="#c02b2b",
    curves=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#4f7fb8"),
)
DARK = Colours(
    name="dark",
    window="#15181e",
    panel="#1d2129",
    raised="#272c37",
    line="#363d4a",
    edge="#747f94",
    text="#e8ebf1",
    faint="#9aa4b5",
    accent="#7aa2ff",
    on_accent="#10131a",
    good="#5fd08f",
    warning="#f0b64d",
    bad="#ff7b72",
    curves=("#56b4e9", "#e69f00", "#2fd19f", "#e08fc0", "#f0e442", "#9ab8ff"),
)


def is_dark() -> bool:
    """The application's current scheme. Not every platform lets a program choose: then we remember."""
    if _used in ("light", "dark"):
        return _used == "dark"
    return QApplication.style().standardPalette().window().color().lightness() < 128


def colours() -> Colours:
    return DARK if is_dark() else LIGHT


def laptop_colour(place: int) -> str:
    """The colour of a run's laptop, by its place: none that a metric's lines have."""
    palette = colours().curves
    return palette[(LAPTOPS_FROM + place) % len(palette)]


def run_colour(place: int) -> str:
    """The colour of one of several overlaid runs. Twelve are distinguishable: the palette, and the same
    darker."""
    palette = colours().curves
    colour, again = QColor(palette[place % len(palette)]), place // len(palette) % 2
    return colour.darker(145).name() if again else colour.name()


def faded(colour: str, part: float = 0.3) -> str:
    """``part`` of a colour over a card, opaque: blending every pixel of a line would double its time."""
    over, under = QColor(colour), QColor(colours().panel)
    mixed = (
        round(part * over_part + (1 - part) * under_part)
        for over_part, under_part in (
            (over.red(), under.red()),
            (over.green(), under.green()),
            (over.blue(), under.blue()),
        )
    )
    return QColor(*mixed).name()


def use(theme: Theme) -> None:
    """Follows the system, or applies a fixed theme; widgets repaint by the palette's change."""
    global _used
    before, _used = _used, theme
    if theme != (before or "system"):
        _tell_platform(theme)
    paint()


def _tell_platform(theme: Theme) -> None:
    """For parts drawn by the system: title bars, its own dialogs."""
    from PySide6.QtCore import Qt  # its hundred enums take 20 ms, too long before the first paint

    schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
    QGuiApplication.styleHints().setColorScheme(schemes.get(theme, Qt.ColorScheme.Unknown))


def follow(theme: Theme) -> None:
    """Calls ``use`` unless the theme is already in use."""
    if theme != _used:
        use(theme)


def remembered(settings: Path) -> Theme:
    """The theme in a home's settings file, read without the core or a parser: for the first paint."""
    try:
        found = re.search(rb'"theme"\s*:\s*"(light|dark)"', settings.read_bytes()[:262_144])
    except OSError:
        return "system"
    return "system" if found is None else ("dark" if found[1] == b"dark" else "light")


def paint() -> None:
    """Applies the current scheme's palette immediately, and the style sheets of all themed widgets one per
    turn of the event loop, visible ones first."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        return
    if app.style().name() != "fusion":
        app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(_palette(colours()))
    waiting = bool(_changing)
    alive = [widget for widget in _wearers if isValid(widget)]
    _changing[:] = [ref(widget) for widget in sorted(alive, key=lambda widget: not widget.isVisible())]
    if _changing and not waiting:
        QTimer.singleShot(0, _change_next)


def wear(widget: QWidget) -> None:
    """Styles it and everything it will contain, now and whenever the theme changes.

    A style sheet for the whole application would take 0.4 s to change: it asks every existing widget.
    """
    _wearers.add(widget)
    widget.setStyleSheet(_present_sheet())


def _change_next() -> None:
    widget = _changing.pop(0)()
    if widget is not None and isValid(widget):
        widget.setStyleSheet(_present_sheet())
    if _changing:
        QTimer.singleShot(0, _change_next)


def _present_sheet() -> str:
    return _sheet(colours(), QFontInfo(QApplication.font()).pointSizeF())


def _palette(c: Colours) -> QPalette:
    palette = QPalette()
    for role, colour in (
        (QPalette.ColorRole.Window, c.window),
        (QPalette.ColorRole.WindowText, c.text),
        (QPalette.ColorRole.Base, c.panel),
        (QPalette.ColorRole.AlternateBase, c.raised),
        (QPalette.ColorRole.Text, c.text),
        (QPalette.ColorRole.Button, c.raised),
        (QPalette.ColorRole.ButtonText, c.text),
        (QPalette.ColorRole.PlaceholderText, c.faint),
        (QPalette.ColorRole.ToolTipBase, c.raised),
        (QPalette.ColorRole.ToolTipText, c.text),
        (QPalette.ColorRole.Highlight, c.accent),
        (QPalette.ColorRole.HighlightedText, c.on_accent),
        (QPalette.ColorRole.Link, c.accent),
        (QPalette.ColorRole.Mid, c.line),
    ):
        palette.setColor(role, QColor(colour))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText, QPalette.ColorRole.WindowText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(c.faint))
    return palette


@cache
def _sheet(c: Colours, pt: float) -> str:
    """Styles by ``kind`` property. ``pt``: the system's font size; Qt's style sheets have no ``em``."""
    icons = _ICONS.as_posix()
    return f"""
    QFrame[kind="card"] {{ background: {c.panel}; border: 1px solid {c.line}; border-radius: 8px; }}
    QFrame[kind="card"][chosen="true"] {{ border: 2px solid {c.accent}; }}
    QFrame[kind="drop"] {{ background: {c.panel}; border: 2px dashed {c.edge}; border-radius: 12px; }}
    QFrame[kind="drop"][chosen="true"] {{ background: {c.raised}; border: 2px solid {c.accent}; }}
    QFrame[kind="problem"] {{ background: {c.panel}; border: 1px solid {c.bad};
        border-left: 4px solid {c.bad}; }}
    QFrame[kind="problem"][level="warning"] {{ border-color: {c.warning}; }}
    QFrame[kind="problem"][level="note"] {{ border-color: {c.accent}; }}
    QLabel[kind="title"] {{ font-size: {pt * 1.6:.1f}pt; font-weight: 600; }}
    QLabel[kind="subtitle"] {{ font-size: {pt * 1.25:.1f}pt; font-weight: 600; }}
    QLabel[kind="heading"] {{ font-weight: 600; }}
    QLabel[kind="faint"] {{ color: {c.faint}; }}
    QLabel[kind="good"] {{ color: {c.good}; }}
    QLabel[kind="good-heading"] {{ color: {c.good}; font-weight: 600; }}
    QLabel[kind="warning"] {{ color: {c.warning}; }}
    QLabel[kind="warning-heading"] {{ color: {c.warning}; font-weight: 600; }}
    QLabel[kind="bad-heading"] {{ color: {c.bad}; font-weight: 600; }}
    QLabel[kind="bad"] {{ color: {c.bad}; }}
    QLabel[kind="mono"] {{ font-family: monospace; }}
    QLabel[kind="code"] {{ font-family: monospace; font-size: {pt * 4:.1f}pt; font-weight: 600; }}
    QPushButton {{ background: {c.raised}; border: 1px solid {c.line};
        border-radius: 6px; padding: 6px 14px; }}
    QPushButton:hover {{ border-color: {c.accent}; }}
    QPushButton:focus {{ border: 2px solid {c.accent}; padding: 5px 13px; }}
    QPushButton:disabled {{ color: {c.faint}; }}
    QPushButton[kind="primary"] {{ background: {c.accent}; color: {c.on_accent}; font-weight: 600; }}
    QPushButton[kind="primary"]:focus {{ border: 2px solid {c.text}; }}
    QPushButton[kind="primary"]:disabled {{ background: {c.raised}; color: {c.faint}; }}
    QPushButton[kind="example"] {{ background: {c.panel}; border: 1px solid {c.edge}; border-radius: 8px;
        padding: 0; text-align: left; }}
    QPushButton[kind="example"]:hover {{ background: {c.raised}; border-color: {c.accent}; }}
    QPushButton[kind="example"]:focus {{ border: 2px solid {c.accent}; }}
    QPushButton[kind="danger"] {{ color: {c.bad}; }}
    QPushButton[kind="quiet"] {{ background: transparent; border-color: transparent; color: {c.accent};
        padding: 6px; }}
    QPushButton[kind="quiet"]:focus {{ padding: 5px; }}
    QPushButton[kind="quiet"]:focus, QPushButton[kind="quiet"]:hover {{ border-color: {c.accent}; }}
    QPushButton[kind="quiet"]:checked {{ background: {c.raised}; border-color: {c.accent}; }}
    QPushButton[kind="side"] {{ background: transparent; border: 1px solid {c.edge}; border-radius: 0;
        padding: 4px 12px; }}
    QPushButton[kind="side"]:checked {{ background: {c.accent}; color: {c.on_accent};
        border-color: {c.accent}; }}
    QPushButton[kind="side"]:focus {{ border: 2px solid {c.text}; padding: 3px 11px; }}
    QFrame#navigation {{ background: {c.panel}; border: none; border-right: 1px solid {c.line}; }}
    QFrame#foot {{ background: {c.panel}; border: none; border-top: 1px solid {c.line}; }}
    QPushButton[kind="screen"] {{ text-align: left; padding: 9px 18px 9px 12px; background: transparent;
        border: 1px solid transparent; }}
    QPushButton[kind="screen"]:hover {{ background: {c.raised}; }}
    QPushButton[kind="screen"]:checked {{ background: {c.raised}; color: {c.accent};
        border-left: 3px solid {c.accent}; padding-left: 10px; }}
    QPushButton[kind="screen"]:focus {{ border: 1px solid {c.accent}; }}
    QLineEdit, QComboBox, QSpinBox, QPlainTextEdit, QTableView, QTreeView, QTextEdit {{
        background: {c.panel}; border: 1px solid {c.line}; border-radius: 6px; padding: 4px; }}
    QLineEdit, QComboBox, QSpinBox {{ border-color: {c.edge}; }}
    QSpinBox {{ padding-left: 8px; }}
    QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QPlainTextEdit:focus {{ border-color: {c.accent}; }}
    QAbstractSpinBox QLineEdit, QComboBox QLineEdit {{ border: none; padding: 0 0 0 4px;
        background: transparent; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: none; width: 20px;
        background: transparent; subcontrol-origin: border; }}
    QAbstractSpinBox::up-button {{ subcontrol-position: top right; }}
    QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; }}
    QAbstractSpinBox::up-arrow {{ image: url({icons}/up-on-{c.name}.svg); width: 10px; height: 10px; }}
    QAbstractSpinBox::down-arrow {{ image: url({icons}/down-on-{c.name}.svg); width: 10px; height: 10px; }}
    QComboBox {{ combobox-popup: 0; }}
    QComboBox::drop-down {{ border: none; width: 22px; }}
    QComboBox::down-arrow {{ image: url({icons}/down-on-{c.name}.svg); width: 14px; height: 14px; }}
    QComboBox QAbstractItemView {{ border: 1px solid {c.faint}; border-radius: 0; outline: none; padding: 2px;
        selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
    QCheckBox {{ spacing: 8px; }}
    QCheckBox::indicator {{ width: 16px; height: 16px; border: 1px solid {c.faint}; border-radius: 4px;
        background: {c.panel}; }}
    QCheckBox::indicator:hover {{ border-color: {c.accent}; }}
    QCheckBox:focus {{ color: {c.accent}; }}
    QCheckBox::indicator:focus {{ width: 14px; height: 14px; border: 2px solid {c.accent}; }}
    QCheckBox::indicator:checked {{ background: {c.accent}; border-color: {c.accent};
        image: url({icons}/check-on-{c.name}.svg); }}
    QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 0; }}
    QScrollBar::handle {{ background: {c.line}; border-radius: 4px; margin: 2px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::handle:hover {{ background: {c.faint}; }}
    QScrollBar::handle:disabled {{ background: transparent; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QToolTip {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.line}; padding: 4px; }}
    QProgressBar {{ background: {c.raised}; border: none; border-radius: 4px; text-align: center;
        min-height: 8px; max-height: 8px; }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: 4px; }}
    QTreeView::item {{ padding: 2px 5px; }}
    QHeaderView::section {{ background: {c.window}; border: none; padding: 6px 8px;
        border-bottom: 1px solid {c.line}; }}
    QScrollArea, QWidget#page {{ background: transparent; }}
    """
