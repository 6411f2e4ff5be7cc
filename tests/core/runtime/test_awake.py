"""Keeping a laptop awake: wakepy and a real D-Bus."""

from __future__ import annotations

import pytest

from core.runtime import awake
from core.runtime.awake import Awake
from tests.core import gnome


async def test_the_desktop_holds_it_awake_until_it_is_let_go() -> None:
    with gnome.desktop() as desktop:
        kept = Awake()
        kept.keep(True)
        kept.keep(True)
        await desktop.changes(1)
        assert desktop.held == {1}
        kept.keep(False)
        kept.keep(True)
        await desktop.changes(3)
        assert desktop.held == {2}
        await kept.close()
        assert not desktop.held


def test_the_method_of_keeping_awake_is_tried_and_released() -> None:
    with gnome.desktop() as desktop:
        assert awake.kept_by() == gnome.GNOME
        assert (desktop.asked, desktop.held) == (1, set())


async def test_without_a_desktop_nothing_is_held_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    kept = Awake()
    kept.keep(True)
    await kept.close()
    assert awake.kept_by() == ""
