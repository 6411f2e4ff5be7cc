"""What a node does about itself: the doctor, its mends, the diagnostics. Loaded late, as asked for seldom."""

from __future__ import annotations

import asyncio
from pathlib import Path

from core.doctor.view import View
from core.vocabulary.answers import Finding


async def examine(view: View, *, deep: bool = False) -> tuple[Finding, ...]:
    from core.doctor import examination

    return await examination.examine(view, deep=deep)


async def mend(view: View, code: str) -> None:
    """Raises ``TandemError``."""
    from core.doctor import mends

    await asyncio.to_thread(mends.mend, view.home, code)


async def save_diagnostics(view: View, path: str) -> str:
    """Where they are. Raises ``TandemError``."""
    from core.node import diagnostics

    findings = await examine(view)
    target = Path(path).expanduser()
    return str(await asyncio.to_thread(diagnostics.save, target, view.home, view.state, findings))
