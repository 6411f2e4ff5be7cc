"""Reports from another laptop, whatever they contain."""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from core.link.hub import Links
from core.report.correspondence import MOST_BYTES, MOST_KEPT, Reports, contained, unpacked
from core.runtime.background import Background
from core.vocabulary import events as ev
from core.vocabulary.errors import REPORT_CAME, TandemError
from core.vocabulary.peer_messages import Message, ReportSent
from core.vocabulary.run_folder import REPORT
from core.vocabulary.state import State, apply
from tests.app import world
from tests.core.fake_node import OTHER, started

PAGE = zlib.compress(b"<p>ok</p>")


class Node:
    """``now_s``: its clock. Messages that it would send are in ``sent``."""

    def __init__(self, folder: Path) -> None:
        self.state = State()
        for event in (started(), *world.linked()):
            self.state = apply(self.state, event)
        self.now_s, self.sent, self.told = 100.0, list[Message](), list[ev.Event]()
        self.folder, self.background = folder / "received", Background()
        links, emit = cast(Links, self), self.told.append
        self.reports = Reports(
            self.folder, links, lambda: self.state, emit, self.background, clock=lambda: self.now_s
        )

    def send(self, device: object, message: Message) -> bool:
        self.sent.append(message)
        return True

    async def comes(self, page: bytes, script: str = "train.py") -> None:
        self.reports.on_sent(OTHER, ReportSent(script=script, page=page))
        await self.background.wait_idle()
        self.now_s += 60.0

    @property
    def kept(self) -> list[Path]:
        return sorted(self.folder.glob("*"))


async def test_a_report_is_kept_and_its_user_told(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.comes(PAGE, "a/../b<script>.py")
    [path] = node.kept
    assert path.stat().st_mode & 0o777 == 0o600
    [event] = node.told
    assert isinstance(event, ev.NoticeRaised)
    assert (event.problem.code, event.problem.detail) == (REPORT_CAME, str(path))
    assert event.problem.what == "Bob's laptop sent the report of a/../b<script>.py."
    assert path.parent == node.folder, "no name from elsewhere is a path here"


def test_the_page_of_another_laptop_stays_in_its_frame() -> None:
    """It cannot end the attribute, and the outer page's restrictions precede the frame."""
    page = contained('"><script>evil()</script>', "<b>eve</b>", "</title>x.py")
    outer, frame = page.split("srcdoc=")
    assert "default-src 'none'" in outer and 'sandbox="allow-scripts"' in outer
    assert frame.startswith('"&quot;&gt;&lt;script&gt;evil()')
    assert page.count("<script") == page.count("<b>") == 0 and page.count("</title>") == 1


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"no zlib",
        PAGE[:-1],
        PAGE + b"more",
        zlib.compress(b"\xff\xfe"),
        zlib.compress(bytes(MOST_BYTES + 1)),
    ],
    ids=["empty", "other", "cut", "longer", "no text", "bomb"],
)
async def test_an_invalid_report_is_not_kept(tmp_path: Path, page: bytes) -> None:
    with pytest.raises((zlib.error, ValueError)):
        unpacked(page)
    node = Node(tmp_path)
    await node.comes(page)
    assert (node.kept, node.told) == ([], [])


async def test_a_laptop_that_sends_many_reports_does_not_fill_the_disk(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for _ in range(MOST_KEPT + 3):
        await node.comes(PAGE)
    assert len(node.kept) == MOST_KEPT
    told = len(node.told)
    await node.comes(PAGE)
    node.now_s -= 59.0
    await node.comes(PAGE)
    assert len(node.told) == told + 1, "too soon"
    size = await node.reports.size()
    assert size == await node.reports.clear() > 0 and node.kept == []


async def test_received_reports_are_listed_with_their_senders_and_deleted(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert await node.reports.kept() == ()
    await node.comes(zlib.compress(b'<meta name="sender" content="eve">'), 'a "b" & <c>.py')
    (node.folder / "00000000-older.html").write_text("one that an earlier Tandem kept")
    newer, older = await node.reports.kept()
    assert (newer.script, newer.sender) == ('a "b" & <c>.py', "Bob's laptop"), (
        "the page cannot say who sent it"
    )
    assert newer.came_s == pytest.approx(time.time(), abs=600)
    assert (older.script, older.sender) == ("00000000-older", "")
    await node.reports.delete(newer.path)
    assert await node.reports.kept() == (older,) and len(node.kept) == 1
    with pytest.raises(TandemError, match="no such report"):
        await node.reports.delete(newer.path)


@pytest.mark.parametrize("name", ["key", "received/../key", "received/key.html"])
async def test_invariant_only_received_reports_are_deleted(tmp_path: Path, name: str) -> None:
    node, private = Node(tmp_path), tmp_path / "key"
    await node.comes(PAGE)
    private.write_text("a key")
    (node.folder / "key.html").symlink_to(private)
    with pytest.raises(TandemError, match="no such report"):
        await node.reports.delete(str(tmp_path / name))
    assert private.exists() and (node.folder / "key.html").is_symlink()


async def test_a_report_is_sent_only_to_whoever_takes_it_and_not_too_often(tmp_path: Path) -> None:
    entry = world.entry(folder=str(tmp_path))
    node = Node(tmp_path)
    with pytest.raises(TandemError, match="no report"):
        await node.reports.send(entry, OTHER)
    (tmp_path / REPORT).write_bytes(b"<p>ok</p>")
    await node.reports.send(entry, OTHER)
    [message] = node.sent
    assert isinstance(message, ReportSent) and unpacked(message.page) == "<p>ok</p>"
    with pytest.raises(TandemError, match="just now"):
        await node.reports.send(entry, OTHER)
    node.now_s += 60.0
    (tmp_path / REPORT).write_bytes(bytes(MOST_BYTES + 1))
    with pytest.raises(TandemError, match="too large"):
        await node.reports.send(entry, OTHER)
    assert len(node.sent) == 1


async def test_no_report_is_sent_to_a_laptop_that_is_only_in_the_same_run(tmp_path: Path) -> None:
    entry, node = world.entry(folder=str(tmp_path)), Node(tmp_path)
    (tmp_path / REPORT).write_bytes(b"<p>ok</p>")
    node.state = State(devices={OTHER: replace(node.state.devices[OTHER], paired=False)})
    with pytest.raises(TandemError, match="not connected"):
        await node.reports.send(entry, OTHER)
    assert not node.sent


async def test_invariant_a_link_in_the_reports_place_sends_no_other_file(tmp_path: Path) -> None:
    node, folder, private = Node(tmp_path), tmp_path / "run", tmp_path / "id_ed25519"
    folder.mkdir()
    private.write_text("a key")
    (folder / REPORT).symlink_to(private)
    with pytest.raises(TandemError, match="no report"):
        await node.reports.send(world.entry(folder=str(folder)), OTHER)
    assert node.sent == []
