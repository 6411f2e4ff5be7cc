"""The log contains this node's messages, no other node's, and no key."""

import asyncio
import logging
import stat
from pathlib import Path

from core.runtime.logs import BYTES, KEPT, Log

logger = logging.getLogger("core.test")


def folder(base: Path, name: str = "logs") -> Path:
    (base / name).mkdir()
    return base / name


def test_lines_and_tracebacks_are_in_the_file_after_close(tmp_path: Path) -> None:
    log = Log(folder(tmp_path))
    log.open()
    try:
        raise ValueError("inner")
    except ValueError:
        logger.exception("it broke")
    log.close()

    text = log.path.read_text()
    assert "ERROR core.test: it broke" in text
    assert "ValueError: inner" in text
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_a_private_key_is_left_out(tmp_path: Path) -> None:
    log = Log(folder(tmp_path))
    log.open()
    logger.warning("loaded %s and more", "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----")
    log.close()

    text = log.path.read_text()
    assert "MC4CAQ" not in text
    assert "and more" in text


async def test_two_nodes_in_one_process_keep_their_logs_apart(tmp_path: Path) -> None:
    one, two = Log(folder(tmp_path, "one")), Log(folder(tmp_path, "two"))
    one.open()
    two.open()

    async def node(log: Log, word: str) -> None:
        log.enter()
        await asyncio.create_task(later(word))

    async def later(word: str) -> None:
        logger.warning(word)

    await asyncio.gather(
        asyncio.create_task(node(one, "of the first")), asyncio.create_task(node(two, "of the second"))
    )
    logger.warning("of nobody")
    one.close()
    two.close()

    assert "of the first" in one.path.read_text()
    assert "of the second" not in one.path.read_text()
    assert "of the second" in two.path.read_text()
    assert "of nobody" in one.path.read_text() and "of nobody" in two.path.read_text()


def test_a_long_log_is_cut_into_a_few_files(tmp_path: Path) -> None:
    log = Log(folder(tmp_path))
    log.open()
    for _ in range(BYTES // 10_000 * (KEPT + 3)):
        logger.warning("x" * 10_000)
    log.close()

    files = sorted(log.path.parent.iterdir())
    assert len(files) == 1 + KEPT
    assert all(file.stat().st_size <= BYTES for file in files)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_an_unwritable_log_does_not_stop_the_caller(tmp_path: Path) -> None:
    log = Log(tmp_path / "missing")
    log.open()
    logger.warning("to nowhere")
    log.close()

    assert not log.path.exists()


def test_foreign_text_adds_no_lines_and_controls_no_terminal(tmp_path: Path) -> None:
    log = Log(folder(tmp_path))
    log.open()
    logger.warning("refused: %s", "x\n2026-11-21 INFO core.node.node: all is well\x1b[2J\x9b1A\u2028end")
    log.close()

    text = log.path.read_text()
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text and "\x9b" not in text
    assert "\\n2026-11-21" in text
