"""A trainer kept warm, with TensorFlow imported, so that a run starts seconds earlier. On the core thread.

The child waits for its order, with one thread and the environment of no run (``core.trainer.warm``); it costs
memory (about 400 MB) and no CPU. Its leash ends it with the node.
"""

from __future__ import annotations

import asyncio

from core.supervisor import spawn


class WarmTrainer:
    """Off until ``keep``. ``take`` hands the child over for one run; ``keep`` after it starts the next."""

    def __init__(self) -> None:
        self._child: spawn.Child | None = None
        self._wanted = False

    async def keep(self) -> None:
        """Make sure that one is booting or ready. Raises ``TandemError`` where no process can be started."""
        self._wanted = True
        if self._child is not None:
            if self._child.process.poll() is None:
                return
            await self._drop()
        child = await asyncio.to_thread(spawn.spawn_warm)
        # Meanwhile another call may have been quicker, or the setting was turned off.
        if self._child is not None or not self._wanted:
            await asyncio.to_thread(child.end)
        else:
            self._child = child

    def take(self) -> spawn.Child | None:
        """The warm child, for ``TrainerProcess``; None where none is alive."""
        child, self._child = self._child, None
        if child is None:
            return None
        if child.process.poll() is not None:
            child.reap()
            return None
        return child

    async def end(self) -> None:
        """The setting was turned off, or the node closes: also ends a child that is being started."""
        self._wanted = False
        await self._drop()

    async def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await asyncio.to_thread(child.end)
