"""The user's settings on this laptop. Kept in ``settings.json``; unknown fields are ignored."""

from __future__ import annotations

import platform
from typing import Annotated, Literal

import msgspec

from core.vocabulary.bounds import Many, Name, Some, Word, Words
from core.vocabulary.data import Folders
from core.vocabulary.text import fit_name

DEFAULT_PORT = 27600
"""Pairing and links share it. Outside the ephemeral range (32768–60999 on Linux)."""

Theme = Literal["system", "light", "dark"]
KeepDays = Annotated[int, msgspec.Meta(ge=0, le=3650)]
BatteryPct = Annotated[int, msgspec.Meta(ge=0, le=95)]
KeepGB = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Smoothing = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """``interfaces``: names to use; empty means every sensible one. ``port`` 0 means any free one."""

    name: str = ""
    port: int = DEFAULT_PORT
    interfaces: tuple[str, ...] = ()
    discovery: bool = True
    theme: Theme = "system"
    smoothing: Smoothing = 0.0
    """Smoothing weight of plots."""
    tray: bool = True
    start_at_login: bool = False
    warm_trainer: bool = False
    """Keep one trainer with TensorFlow imported ready; costs about 400 MB."""
    foresee: bool = True
    """Import TensorFlow ahead: once *Train* is opened or a script chosen, here or by a paired laptop that
    chose this one, and during a run, in case a laptop is lost and comes back."""
    stay_awake: bool = True
    """Keep this laptop from falling asleep while a run is under way."""
    go_on: bool = False
    """When Tandem opens again after a crash, continue the interrupted runs that this laptop started."""
    leave_below_pct: BatteryPct = 0
    """Leave the run when this laptop's battery is below this percentage; 0: never."""
    keep_days: KeepDays = 30
    keep_gb: KeepGB = 10
    """How long, and how much at most, other laptops' project and run files stay here."""
    first_run_done: bool = False
    accepted: tuple[str, ...] = ()
    """Code (``Plan.code``) whose differences from one machine's result are accepted, the newest last."""
    data: Folders = {}
    """Data folders of this laptop. Runs that other laptops start use them if they hold the same files."""


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields to change; None leaves a field as it is."""

    name: Words | None = None
    port: int | None = None
    interfaces: Some[Name] | None = None
    discovery: bool | None = None
    theme: Theme | None = None
    smoothing: Smoothing | None = None
    tray: bool | None = None
    start_at_login: bool | None = None
    warm_trainer: bool | None = None
    foresee: bool | None = None
    stay_awake: bool | None = None
    go_on: bool | None = None
    leave_below_pct: BatteryPct | None = None
    keep_days: KeepDays | None = None
    keep_gb: KeepGB | None = None
    first_run_done: bool | None = None
    accepted: Many[Word] | None = None
    data: Folders | None = None


def own_name(settings: Settings) -> str:
    """This laptop's name: the user's choice, or the system's."""
    return fit_name(settings.name or platform.node().partition(".")[0])


def changed(settings: Settings, change: SettingsChange) -> Settings:
    """``settings`` with the fields that ``change`` sets."""
    fields = {
        name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None
    }
    return msgspec.structs.replace(settings, **fields)
