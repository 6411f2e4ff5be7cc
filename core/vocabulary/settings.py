"""What a user chose on this laptop. Kept in ``settings.json``; unknown fields are ignored."""

from __future__ import annotations

import platform
from typing import Literal

import msgspec

from core.vocabulary.text import fit_name

DEFAULT_PORT = 27600
"""Pairing and links share it. Outside the ephemeral range (32768–60999 on Linux)."""

Theme = Literal["system", "light", "dark"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """``interfaces``: names to use; empty means every sensible one. ``port`` 0 means any free one."""

    name: str = ""
    port: int = DEFAULT_PORT
    interfaces: tuple[str, ...] = ()
    discovery: bool = True
    theme: Theme = "system"
    tray: bool = True
    start_at_login: bool = False
    warm_trainer: bool = False
    """Keep one trainer with TensorFlow imported ready; costs about 400 MB."""
    first_run_done: bool = False
    accepted: tuple[str, ...] = ()
    """Code (``Plan.code``) whose differences from one machine's result are accepted, the newest last."""


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields to change; None leaves a field as it is."""

    name: str | None = None
    port: int | None = None
    interfaces: tuple[str, ...] | None = None
    discovery: bool | None = None
    theme: Theme | None = None
    tray: bool | None = None
    start_at_login: bool | None = None
    warm_trainer: bool | None = None
    first_run_done: bool | None = None
    accepted: tuple[str, ...] | None = None


def own_name(settings: Settings) -> str:
    """What this laptop is called: as its user chose, else as its system calls it."""
    return fit_name(settings.name or platform.node().partition(".")[0])


def changed(settings: Settings, change: SettingsChange) -> Settings:
    """``settings`` with the fields that ``change`` gives."""
    fields = {
        name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None
    }
    return msgspec.structs.replace(settings, **fields)
