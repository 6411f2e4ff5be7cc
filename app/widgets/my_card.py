"""This laptop: its name, where others reach it, what it has, how busy it is."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication

from app import device_words as words
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from core.vocabulary.state import Me


class MyCard(Card):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("this-laptop")
        self.name = ElidedLabel("", "heading")
        self.state = Label("This laptop", "faint")
        self.where = Label("", "mono")
        self.where.setObjectName("own-address")
        self.copy = button("Copy", self._copy, "quiet", name="copy-address")
        name_for_readers(self.copy, "Copy this laptop's address")
        self.hardware = ElidedLabel("", "faint")
        self.use = ElidedLabel("", "faint")
        self._me: Me | None = None
        self.name.setSizePolicy(self.name.sizePolicy().Policy.Expanding, self.name.sizePolicy().Policy.Fixed)
        self.body.addLayout(row(self.name, self.state))
        self.body.addLayout(row(self.where, self.copy, 1))
        self.body.addWidget(self.hardware)
        self.body.addWidget(self.use)

    def show_me(self, me: Me | None, busy: bool) -> None:
        self._me = me
        if me is None:
            self.name.say("Starting…")
            self.copy.hide()
            return
        self.name.say(me.name)
        self.state.say("This laptop · training" if busy else "This laptop")
        self.where.say(words.addresses_words(me.addresses, 3) or "In no network")
        self.copy.setVisible(bool(me.addresses))
        self.hardware.say(words.hardware_words(me.hardware))
        self.use.say(words.use_words(me.reading))
        name_for_readers(self, me.name, "This laptop")

    def _copy(self) -> None:
        if self._me is not None and self._me.addresses:
            QGuiApplication.clipboard().setText(self._me.addresses[0])
