"""The demo's course from the first process to the report; always cleans up."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import platformdirs

from app.demo import pairing, training
from app.demo.agent import Agent, Say, running
from app.demo.report import Report, judged
from core.vocabulary.errors import TandemError


async def tell(count: int, epochs: int, tell_line: Say, *, keep: bool, out: Path | None) -> Report:
    """Runs the demo; each line begins with the seconds since the start. A failure goes into the report's
    ``problem``, together with the measurements so far."""
    began_s = time.monotonic()

    def clock() -> float:
        return time.monotonic() - began_s

    def say(line: str) -> None:
        tell_line(f"{clock():6.1f} s  {line}")

    folder = Path(tempfile.mkdtemp(prefix="tandem-demo-")).resolve()
    course = _Course(Report(nodes=count), say, clock)
    try:
        async with running(count, folder) as nodes:
            script = await asyncio.to_thread(training.copy_example, folder)
            await course.run(nodes, script, epochs, out)
    except TandemError as error:
        course.note(problem=error.problem)
    finally:
        if keep:
            say(f"homes kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    course.note(total_s=clock())
    return judged(course.report)


class _Course:
    """The steps in order; ``report`` grows with them."""

    def __init__(self, report: Report, say: Say, clock: Callable[[], float]) -> None:
        self.report = report
        self._say = say
        self._clock = clock

    def note(self, **found: object) -> None:
        self.report = msgspec.structs.replace(self.report, **found)

    async def run(self, nodes: Sequence[Agent], script: Path, epochs: int, out: Path | None) -> None:
        for node in nodes:
            assert node.state.me is not None
            self._say(f"{node.name} is ready at {', '.join(node.state.me.addresses)} (process {node.pid})")
        began_s = self._clock()
        await pairing.find_each_other(nodes, self._say)
        self.note(discovery_s=self._clock() - began_s)
        began_s = self._clock()
        for other in nodes[1:]:
            await pairing.pair(nodes[0], other, self._say)
        self.note(pairing_s=self._clock() - began_s)
        run = await training.train(nodes, script, epochs, self._say)
        self.report, model = await training.outcome(nodes, run, self.report)
        if model is not None:
            self.note(model_path=str(keep_model(model, out)))


def keep_model(model: Path, out: Path | None) -> Path:
    """Copies the model to ``out``, by default Tandem's own place for it (else a temporary one)."""
    places = (
        [out]
        if out is not None
        else [platformdirs.user_data_path("tandem-demo"), Path(tempfile.gettempdir())]
    )
    failure: OSError | None = None
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            return Path(shutil.copy(model, place / model.name)).resolve()
        except OSError as error:
            failure = error
    raise TandemError(
        code="demo-model",
        what=f"The trained model can't be copied to {places[-1]} ({failure}).",
        fix="Give another folder with --out DIR.",
    )
