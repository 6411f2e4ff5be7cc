"""The same model by ``fit`` through Tandem's engine, as a managed script has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.engine.heard import Heard
from bench.engine.place import Place
from bench.engine.work import Work
from core.trainer.exact.interface import Checkpointing, Cluster
from core.trainer.exact.patch.install import install


def trainer(strategy: Any, work: Work, place: Place, observer: Heard) -> tuple[Any, Callable[[int], None]]:
    """The model, and a function that trains it so many epochs."""
    cluster = Cluster(
        strategy,
        place.rank,
        place.shares,
        seed=1,
        wire=place.wire,
        balance=place.balance,
        checkpointing=Checkpointing(Path(place.keep), place.keep_every_s) if place.keep else None,
    )
    with install(cluster, observer).scope():
        model = work.model()
        model.compile(
            optimizer=work.optimizer(), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
        )

    def train(epochs: int) -> None:
        model.fit(work.images, work.labels, batch_size=work.batch, epochs=epochs, verbose=0)

    return model, train
