"""The arguments of a script: a line as on a command line, and a field for each option that it declares."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QWidget

from app.models import argument_fields
from app.models.argument_fields import ON, Field
from app.widgets.card import column, row
from app.widgets.flow import Flow
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, name_for_readers, set_tooltip
from app.widgets.several_values import SeveralValues
from core.vocabulary.answers import Declared

LEAST_CHARACTERS = 12


class ArgumentForm(QWidget):
    """``changed(text)`` after a user's change of the line or a field, each of which shows the other's.
    ``values``: the widget for several values."""

    changed = Signal(str)

    def __init__(self, values: SeveralValues) -> None:
        super().__init__()
        self.line = QLineEdit()
        self.line.setObjectName("arguments")
        self.line.setPlaceholderText("as on a command line, e.g. --epochs 20")
        self.line.textEdited.connect(self.changed)
        name_for_readers(self.line, "Arguments of the script")
        label = Label("Arguments", "faint")
        label.setBuddy(self.line)
        self.fields = Flow(equal=True)
        self._key: object = None
        self._options: Sequence[Declared] = ()
        self._cells: list[_Cell] = []
        self.setLayout(column(row(label, self.line, values.several), values, self.fields))

    def show_options(self, options: Sequence[Declared], *, several: bool) -> None:
        """``several``: commas separate values to try."""
        self._options = options
        found = argument_fields.fields(options, self.line.text(), several=several)
        key = several, [field.option for field in found]
        if key != self._key:
            self._key = key
            self.fields.clear()
            self._cells = [_Cell(self, field, several=several) for field in found]
            for cell in self._cells:
                self.fields.add(cell)
        for cell, field in zip(self._cells, found, strict=True):
            cell.show_field(field)
        self.fields.setVisible(bool(found))

    def take(self, option: Declared, value: str) -> None:
        """A user's change of a field."""
        self.line.setText(argument_fields.changed(self.line.text(), option, value, self._options))
        self.changed.emit(self.line.text())


class _Cell(QWidget):
    def __init__(self, form: ArgumentForm, field: Field, *, several: bool) -> None:
        super().__init__()
        self._form, self._option = form, field.option
        self._field = self._made(field.option, field.title, several=several)
        self._field.setObjectName(f"argument-{field.title}")
        self._wrong = Label("", "bad", wraps=True)
        title = Label(field.title, "faint")
        title.setBuddy(self._field)
        name_for_readers(self._field, field.title, field.meaning)
        for each in (title, self._field):
            set_tooltip(each, field.meaning)
        layout = column(title, self._field, self._wrong, 1, spacing=2)
        self.setLayout(layout)

    def show_field(self, field: Field) -> None:
        self._wrong.say_or_hide(field.wrong)
        self._field.setEnabled(field.usable or self._field.hasFocus())
        shown = self._field
        if isinstance(shown, QCheckBox):
            shown.setChecked(bool(field.value))
        elif isinstance(shown, QLineEdit) and shown.text() != field.value:
            shown.setText(field.value)
        elif isinstance(shown, QComboBox) and not shown.isEditable():
            shown.setCurrentIndex(max(0, shown.findData(field.value)))
        elif isinstance(shown, QComboBox) and shown.currentText() != field.value:
            shown.setEditText(field.value)

    def _made(self, option: Declared, title: str, *, several: bool) -> QWidget:
        if option.switch:
            switch = QCheckBox("yes")
            switch.clicked.connect(lambda on: self._edit(ON if on else ""))
            return switch
        if option.choices:
            box = unscrolled(QComboBox())
            box.setMinimumContentsLength(LEAST_CHARACTERS)
            box.addItem("" if several else f"{option.default} (default)".removeprefix(" "), "")
            for each in option.choices:
                box.addItem(each, each)
            box.activated.connect(lambda _: self._edit(box.currentText() if several else box.currentData()))
            if several:
                typed = QLineEdit()
                typed.textEdited.connect(self._edit)
                typed.setPlaceholderText(option.default)
                box.setLineEdit(typed)
                box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
                box.setCompleter(None)  # type: ignore[arg-type]
            return box
        line = QLineEdit()
        line.setMinimumWidth(line.fontMetrics().averageCharWidth() * LEAST_CHARACTERS)
        line.textEdited.connect(self._edit)
        line.setPlaceholderText(option.default)
        return line

    def _edit(self, value: str) -> None:
        self._form.take(self._option, value)
