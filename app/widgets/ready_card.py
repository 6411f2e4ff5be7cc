"""Whether Train can be pressed, in one line; the rest is folded unless it needs the user."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.models.preflight import Headline, needs_the_user
from app.theme import GAP
from app.widgets.card import Card, fill
from app.widgets.findings import FindingsList
from app.widgets.fold import Fold
from app.widgets.labels import Label
from core.vocabulary.answers import Finding


class ReadyCard(Card):
    """``mend_asked(code)``, ``taken(offer)``: the user pressed a finding's Mend, or one of its offers.
    ``details`` are shown when unfolded."""

    mend_asked = Signal(str)
    taken = Signal(object)

    def __init__(self, *details: QWidget) -> None:
        super().__init__()
        self.setAccessibleName("Ready to train")
        self.headline = Label("", "heading", wraps=True)
        self.headline.setObjectName("ready")
        self.summary = Label("", "faint", wraps=True)
        self.needs = FindingsList()
        self.checks = FindingsList()
        self.more = Fold("Roles, options and checks", name="more")
        self.more.body.setSpacing(GAP)
        fill(self.more.body, *details, Label("Before the start", "heading"), self.checks)
        for findings in (self.needs, self.checks):
            findings.mend_asked.connect(self.mend_asked)
            findings.taken.connect(self.taken)
        self.add(self.headline, self.summary, self.needs, self.more)

    def show_headline(self, headline: Headline | None) -> None:
        """None: not known yet. The last headline stays while the user types."""
        if headline is None:
            if not self.headline.text():
                self.headline.say("Getting ready…")
            return
        self.headline.say(headline.words)
        self.headline.make(headline.kind)
        self.summary.say_or_hide(headline.summary)

    def begin(self) -> None:
        """Another script: nothing is known about it."""
        self.headline.say("")
        self.headline.make("heading")
        self.summary.hide()

    def show_findings(self, found: Sequence[Finding]) -> None:
        needs = [finding for finding in found if needs_the_user(finding)]
        self.needs.show_findings(needs)
        self.needs.setVisible(bool(needs))
        self.checks.show_findings([finding for finding in found if finding not in needs])
