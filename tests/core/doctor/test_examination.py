"""All checks together: none can spoil the others."""

import asyncio
import threading
from pathlib import Path

import pytest

from core.doctor.examination import CHECKS, examine
from core.doctor.view import Examined, ok
from core.vocabulary.answers import Finding
from tests.core.doctor.views import view


def check_fine(seen: Examined) -> Finding:
    return ok("fine", "test", "Fine.")


async def check_also_fine(seen: Examined) -> list[Finding]:
    return [ok("one", "test", "One."), ok("two", "test", "Two.")]


def check_nothing(seen: Examined) -> None:
    return None


def check_broken(seen: Examined) -> Finding:
    raise RuntimeError("a bug")


async def check_endless(seen: Examined) -> Finding:
    await asyncio.Event().wait()
    raise AssertionError


async def test_findings_come_in_the_order_of_the_checks(tmp_path: Path) -> None:
    found = await examine(view(tmp_path), checks=(check_also_fine, check_nothing, check_fine))

    assert [finding.code for finding in found] == ["one", "two", "fine"]


async def test_a_check_that_fails_is_a_finding(tmp_path: Path) -> None:
    found = await examine(view(tmp_path), checks=(check_broken, check_fine), limit_s=60.0)

    assert [finding.level for finding in found] == ["error", "ok"]
    assert "broken failed (RuntimeError)" in found[0].what


async def test_a_check_that_never_ends_is_a_finding(tmp_path: Path) -> None:
    # The other check takes no thread's time, which may come late.
    found = await examine(view(tmp_path), checks=(check_endless, check_also_fine), limit_s=0.01)

    assert [finding.level for finding in found] == ["error", "ok", "ok"]
    assert "endless did not end" in found[0].what


async def test_a_blocking_check_does_not_block_the_loop(tmp_path: Path) -> None:
    looped = threading.Event()

    def check_waiting(seen: Examined) -> Finding:
        assert looped.wait(30), "the loop stood still"
        return ok("waited", "test", "Waited.")

    asking = asyncio.create_task(examine(view(tmp_path), checks=(check_waiting,), limit_s=60.0))
    await asyncio.sleep(0)
    looped.set()

    assert [finding.code for finding in await asking] == ["waited"]


@pytest.mark.real
async def test_the_real_checks_look_at_this_machine(tmp_path: Path) -> None:
    found = await examine(view(tmp_path, port=None), limit_s=100.0)

    assert len(found) >= len(CHECKS) - 2
    assert not [finding for finding in found if finding.code.startswith("check-")]
    for finding in found:
        assert finding.what.endswith(".")
        assert finding.fix or finding.level in ("ok", "note")
