"""Runs steps of a model whose members meet between steps, not in them. Not exact (docs/slow-networks.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core.trainer.exact.members.collectives import NoCollectives
from core.trainer.exact.rare.rounds import Rounds
from core.trainer.exact.steps import while_loop
from core.trainer.exact.steps.data import Portion
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.loop import Loop
from core.trainer.exact.steps.result import Batch, CallOutputs, Logs, PortionResult, Spec, Traced
from core.vocabulary.options import meet_every


class _BetweenMeetings(NoCollectives):
    meets_between_steps = True


class RareLoop(Loop):
    """A model's train_function. A model that cannot be trained this way is trained exactly, with a
    message."""

    def __init__(
        self, model: Any, step_function: Callable[[Batch], Logs], engine: Engine, *, is_training: bool
    ) -> None:
        super().__init__(model, step_function, engine, is_training=is_training)
        self._rounds = Rounds(engine, model, meet_every(engine.sync) or 0)
        self._nobody = _BetweenMeetings(engine.rank, engine.members)
        self._alone: dict[str, tuple[Traced, Traced]] = {}
        """Exact steps, each with the step without exchange made from it, by spec."""
        self._fit: Any = None
        self._by_batch = False

    @property
    def costs(self) -> Rounds | None:
        """The cost of the present fit's meetings; None if members meet in every step."""
        return self._rounds if self._fits_rarely and self._alone else None

    def flush(self, *, whole: bool = False) -> None:
        self._rounds.flush(whole=whole)

    @property
    def _fits_rarely(self) -> bool:
        engine = self.engine
        fits = engine.fitting and engine.fit.model is self.model and not self._by_batch
        return fits and not self._why_exact()

    def _why_exact(self) -> str:
        """Why members must meet in every step of this model, if that is known without a trace; or ""."""
        if self._sharings.own_step:
            return "its train_step is the script's own"
        return "it runs eagerly" if self.model.run_eagerly else ""

    def _run(self, portion: Portion) -> Logs:
        if self.engine.fit is not self._fit:
            self._fit = self.engine.fit
            self._rounds.begin()
        left, logs = portion.steps, None
        while left > 0:
            self._rounds.meet_if_due()
            part = replace(portion, steps=min(left, self._rounds.left), done=0)
            try:
                logs = super()._run(part)
            except StopIteration:
                if logs is None:
                    raise
                break
            portion.done += part.done
            left -= part.done
            if self.costs:
                portion.pace.target_s = self._rounds.portion_s
                self._rounds.passed(part.done)
                self._say()
            if part.done < part.steps:
                break  # The data has ended.
        assert logs is not None
        return logs

    def _run_batch(self, data: Batch) -> Logs:
        self._say_exact("train_on_batch")
        self.flush(whole=True)
        self._by_batch = True
        try:
            return super()._run_batch(data)
        finally:
            self._by_batch = False

    def _run_call(
        self, traced: Traced, name: str, untraced: Callable[..., CallOutputs] | None, *source: Any
    ) -> PortionResult:
        if traced.alone:
            self._rounds.step_begins()
        return super()._run_call(traced, name, untraced, *source)

    def _traced_for(self, data_spec: Spec, batch: Batch | None = None) -> Traced:
        exact = super()._traced_for(data_spec, batch)
        if not self._fits_rarely:
            if why := self._why_exact():
                self._say_exact(f"{self.model.name}: {why}")
            return exact
        self._rounds.prepare()
        if not exact.judged:
            return exact
        if exact.sharing.whole:
            self._say_exact(f"{self.model.name}: every laptop computes each batch whole")
            return exact
        if exact.sharing.gathers:
            self._say_exact(f"{self.model.name}: its loss is of the batch as a whole")
            return exact
        return self._without_exchange(data_spec, exact)

    def _without_exchange(self, data_spec: Spec, exact: Traced) -> Traced:
        """A step like `exact` that exchanges nothing."""
        spec = while_loop.free_rows(data_spec)
        known, alone = self._alone.get(repr(spec), (None, None))
        if alone is None or known is not exact:
            alone = self._called(self.step(spec, self._nobody, self.engine.meter), spec)
            alone.alone = alone.judged = True
            alone.course.able = False
            self.engine.audits.why = self.engine.audits.why or "laptops meet rarely"
            self._rounds.prepare(alone.step.graph)
            self._alone[repr(spec)] = exact, alone
        return alone

    def _say(self) -> None:
        every = self._rounds.met_every
        self.engine.say_once(
            f"{self.model.name}: laptops meet every {every} steps. The result is not that of one machine."
        )

    def _say_exact(self, what: str) -> None:
        self.engine.say_once(f"Laptops meet in every step, which is exact, for {what}.")
