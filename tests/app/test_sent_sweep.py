"""A sweep's report sent from the window: real nodes and links, stand-in trainers."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.runs import RunsView
from core.node.node import Node
from core.vocabulary.answers import Answer, RunList, SweepAccepted
from core.vocabulary.commands import Command, ListRuns, StartSweep
from core.vocabulary.errors import REPORT_CAME
from tests.app.seat import on_screen
from tests.core.nodes import LIMIT_S, wait_for
from tests.core.test_two_nodes_sweep import RATES, over, two, wanted

pytestmark = pytest.mark.real


class OnThisThread:
    """Carries a window's commands to a node whose loop runs on the window's thread."""

    def __init__(self, bridge: Bridge, node: Node) -> None:
        self._node = node
        self._tasks: set[asyncio.Task[None]] = set()
        bridge.attach(self)
        bridge.begin(node.state)
        self.end = node.subscribe(bridge.deliver)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        async def carry() -> None:
            on_answer(await self._node.submit(command))

        task = asyncio.get_running_loop().create_task(carry())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not true():
            QApplication.processEvents()
            await asyncio.sleep(0.005)


async def test_the_report_of_a_sweep_is_sent_from_its_page_and_kept_on_the_other_laptop(
    tmp_path: Path, qtbot: QtBot, bridge: Bridge
) -> None:
    async with two(tmp_path) as (anna, ben):
        spec = wanted(tmp_path)
        spec = replace(spec, run=replace(spec.run, solo=True))
        started = await anna.node.submit(StartSweep(spec=spec))
        assert isinstance(started, SweepAccepted), started
        await wait_for(anna.node, over)
        core = OnThisThread(bridge, anna.node)
        view = on_screen(qtbot, bridge, RunsView(bridge))
        await until(lambda: view.table.isVisible() and view.sorted.rowCount() == 1)
        view.table.selectRow(0)
        assert view.send.button.isVisible(), "from the list, too"
        view.open.click()
        await until(lambda: view.swept is not None and view.swept.card.send.button.isVisible())
        assert view.swept is not None and view.swept.report.isVisible()
        card = view.swept.card
        (action,) = card.send.button.menu().actions()
        assert action.text() == "ben"
        action.trigger()
        await until(card.send.said.isVisible)
        assert card.send.said.text() == "Sent to ben."
        told = await wait_for(ben.node, lambda s: any(each.code == REPORT_CAME for each in s.notices))
        kept = Path(told.notices[-1].detail)
        page = html.unescape(kept.read_text())  # framed, as of a stranger
        assert f"4: --lr {RATES[-1]}" in page and "best loss <b>0.0001</b> trial 4" in page
        listed = await ben.node.submit(ListRuns())
        assert isinstance(listed, RunList)
        assert [(each.path, each.script, each.sender) for each in listed.reports] == [
            (str(kept), "train.py", "anna")
        ]
        core.end()
        QApplication.processEvents()  # what the window has not heard yet
        view.hide()
