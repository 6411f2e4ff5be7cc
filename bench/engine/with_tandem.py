"""The same model by ``fit`` through Tandem's engine, as a managed script has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.engine.place import Place
from bench.engine.work import Work
from core.trainer.exact.seam import Cluster, install


class Deaf:
    """Nobody watches this training."""

    def on_fit_began(self, epochs: int, steps: int | None, global_batch: int | None) -> None: ...

    def on_step(self, *heard: Any) -> None: ...

    def on_epoch_ended(self, epoch: int, logs: Mapping[str, float]) -> None: ...

    def on_evaluated(self, logs: Mapping[str, float]) -> None: ...

    def on_fit_ended(self) -> None: ...

    def on_measured(self, *heard: Any) -> None: ...

    def on_shares(self, *heard: Any) -> None: ...

    def on_said(self, words: str) -> None: ...

    def should_stop(self) -> bool:
        return False


def trainer(strategy: Any, work: Work, place: Place) -> tuple[Any, Callable[[int], None]]:
    """The model, and a function that trains it so many epochs."""
    cluster = Cluster(strategy, place.rank, place.shares, seed=1, wire=place.wire)
    with install(cluster, Deaf()).scope():
        model = work.model()
        model.compile(
            optimizer=work.optimizer(), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
        )

    def train(epochs: int) -> None:
        model.fit(work.images, work.labels, batch_size=work.batch, epochs=epochs, verbose=0)

    return model, train
