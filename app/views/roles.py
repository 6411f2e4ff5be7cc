"""Roles: who does what in the next run, as the node proposes or the user wants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from app.models.draft import RunDraft, candidates, standing_roles, taking_part, why_not
from app.models.role_changes import roles_of, swapped, with_roles
from app.widgets.buttons import button
from app.widgets.card import ByKey, Card, column, row
from app.widgets.labels import Label, set_tooltip
from app.widgets.role_row import RoleRow
from app.widgets.tab_order import tab_as_seen
from app.widgets.tf_config_fold import TfConfigFold
from app.words.device_words import hardware_words
from core.vocabulary.answers import PlanMade
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan, Role
from core.vocabulary.state import State

_LEAD = (
    "The chief saves the run's model and files. This laptop is the chief unless you change that. Drag one "
    "laptop onto another to swap their roles."
)
_SHARES = "Each laptop's share of a batch follows its speed while it trains, unless you set it by hand."
_COMPUTES = {Role.CHIEF, Role.WORKER}


class RolesBox(Card):
    """``changed(draft)``: the draft after a user's change."""

    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__(framed=False)
        self.setAccessibleName("Roles")
        self._draft = RunDraft()
        self._plan: Plan | None = None
        self._last_shares: dict[DeviceId, int] = {}
        self._own = False
        self.swap = button("Swap chief and worker", self._swap, name="swap-roles")
        self.reset = button("Reset to suggested", self._reset, "quiet", name="reset-roles")
        self.by_hand = QCheckBox("Set shares by hand")
        self.by_hand.setObjectName("shares-by-hand")
        self.by_hand.clicked.connect(self._on_by_hand)
        set_tooltip(self.by_hand, "How many rows of each batch a laptop computes, compared to the others.")
        self.tf_config = TfConfigFold()
        rows = column()
        self.rows = ByKey(rows, self._new)
        self._lead = Label(_LEAD, "faint", wraps=True)
        head = row(Label("Roles", "heading"), 1, self.reset, self.swap)
        self.add(head, self._lead, rows, row(self.by_hand, 1), self.tf_config)

    def show_roles(self, draft: RunDraft, state: State, made: PlanMade | None, *, own: bool) -> None:
        """``made``: the newest plan, also while the next one is on its way."""
        self._draft, self._own = draft, own
        self._plan = made.plan if made is not None else None
        self._last_shares = made.last_shares if made is not None else {}
        self._keep_rows(state)
        standing = replace(draft, roles=standing_roles(draft, taking_part(draft, state)))
        total = self._computing_total()
        together = len(taking_part(draft, state)) > 1  # one laptop alone shares with nobody
        by_hand = together and bool(draft.shares)
        for device, line in self.rows.items():
            other = state.devices.get(device)
            reason = why_not(other) if other is not None else ""
            if other is not None:
                line.show_device(other.shown_name, reason or hardware_words(other.hardware))
            elif state.me is not None:
                line.show_device(f"{state.me.name} (this laptop)", hardware_words(state.me.hardware))
            roles = (Role.NONE,) if reason else roles_of(standing, self._plan, device)
            line.show_roles(roles, own=own, able=not reason)
            computes = bool(_COMPUTES.intersection(roles))
            share = self._share(device) if computes else None
            shared = together and not own and total
            part = self._part(device, share / total) if share is not None and shared else ""
            line.show_share(share, part, by_hand)
        self.by_hand.setChecked(by_hand)
        self.by_hand.setVisible(not own and self._plan is not None and not self._plan.solo)
        self._lead.say(f"{_LEAD} {_SHARES}" if together and not own else _LEAD)
        workers = self._plan is not None and len(self._plan.members) > 1
        self.swap.setVisible(workers)
        self.reset.setVisible(bool(draft.roles or draft.shares or draft.left_out))
        self.tf_config.show_plan(made, state)

    def _keep_rows(self, state: State) -> None:
        me = [state.me.device] if state.me is not None else []
        if self.rows.keep((*me, *(device.device for device in candidates(state)))):
            tab_as_seen(self)

    def _new(self, device: DeviceId) -> RoleRow:
        line = RoleRow(device)
        line.roles_chosen.connect(partial(self._choose, device))
        line.share_chosen.connect(partial(self._choose_share, device))
        line.dropped.connect(lambda other: self._drop(DeviceId(other), device))
        return line

    def _part(self, device: DeviceId, part: float) -> str:
        """The fraction of each batch that a laptop computes, as far as known."""
        if self._draft.shares or self._plan is None or not self._plan.balance:
            return f"{100 * part:.0f} % of each batch"
        total = sum(self._last_shares.values())
        if device not in self._last_shares or total <= 0:
            return "share by speed"
        return f"share by speed: last time {100 * self._last_shares[device] / total:.0f} %"

    def _share(self, device: DeviceId) -> int | None:
        if device in self._draft.shares:
            return self._draft.shares[device]
        if self._plan is None:
            return None
        return next((member.share for member in self._plan.members if member.device == device), None)

    def _computing_total(self) -> int:
        if self._plan is None:
            return 0
        return sum(
            self._share(member.device) or 0
            for member in self._plan.members
            if member.device not in self._draft.left_out
            and _COMPUTES.intersection(roles_of(self._draft, self._plan, member.device))
        )

    # --- the user ------------------------------------------------------------------------------------------

    def _choose(self, device: DeviceId, roles: tuple[Role, ...]) -> None:
        self.changed.emit(with_roles(self._draft, self._plan, device, roles))

    def _choose_share(self, device: DeviceId, share: int) -> None:
        self.changed.emit(replace(self._draft, shares={**self._draft.shares, device: share}))

    def _drop(self, one: DeviceId, other: DeviceId) -> None:
        if one in self.rows and self.rows[one].role.isEnabled() and self.rows[other].role.isEnabled():
            self.changed.emit(swapped(self._draft, self._plan, one, other))

    def _swap(self) -> None:
        if self._plan is not None and len(self._plan.members) > 1:
            chief = self._plan.chief.device
            other = next(member.device for member in self._plan.members if member.device != chief)
            self.changed.emit(swapped(self._draft, self._plan, chief, other))

    def _on_by_hand(self, by_hand: bool) -> None:
        shares: dict[DeviceId, int] = {}
        if by_hand and self._plan is not None:
            known = self._last_shares or {member.device: member.share for member in self._plan.members}
            total = sum(known.values()) or 1
            shares = {device: round(100 * share / total) for device, share in known.items()}
        self.changed.emit(replace(self._draft, shares=shares))

    def _reset(self) -> None:
        self.changed.emit(replace(self._draft, roles={}, shares={}, left_out=frozenset()))
