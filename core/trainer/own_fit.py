"""Scripts that build MultiWorkerMirroredStrategy themselves and train by ``fit``: the engine, in theirs.

Keras 3's own ``fit`` fails under that strategy. Here the members meet through the script's strategy, with
equal shares, and the rest of the script stays what it would be on one machine: what it makes in ``scope()``
are plain variables that the engine keeps equal (docs/exactness.md says why), and a dataset it distributes
comes back whole, as each step's rows are shared between the members anyway. Main thread of the trainer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.project.script import analyse
from core.trainer.exact.interface import Cluster

# Not later: once the script runs, no module of Tandem's can be imported any more.
from core.trainer.exact.patch import one_member
from core.trainer.exact.patch.install import Installation, install
from core.trainer.observer import ReportingObserver
from core.vocabulary.errors import TandemError
from core.vocabulary.trainer_messages import Train

_WORDS = (
    "The script's fit trains on {members} members, through its own MultiWorkerMirroredStrategy: a batch "
    "counts all members' rows, as on one machine, and is shared equally."
)
_WHOLE = "The dataset that the script distributes is taken whole: each step's rows are shared by Tandem."


def wanted(script: Path) -> bool:
    """Whether a script is one of these. What cannot be read is not."""
    try:
        return analyse(script).fits_in_own_strategy
    except TandemError:
        return False


class OwnFit:
    """The engine, once the script has built its strategy."""

    def __init__(self, train: Train, observer: ReportingObserver) -> None:
        self._train = train
        self._observer = observer
        self._said: set[str] = set()
        self.installation: Installation | None = None

    def on_strategy(self, strategy: Any) -> None:
        """A strategy was built. The engine goes into the first that joins several members."""
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            if self.installation is None:
                one_member.install(self._observer)  # Keras' own fit, which reports at least
            return
        members = strategy.num_replicas_in_sync
        if members < 2:
            return
        if self.installation is None:
            shares = (1,) * members
            folders = self._train.own_folders
            cluster = Cluster(strategy, self._train.rank, shares, None, self._train.wire, folders=folders)
            self.installation = install(cluster, self._observer)
            self._observer.shares = shares
        _StandBack(strategy, self._say_once)
        self._say_once(_WORDS.format(members=members))

    def _say_once(self, words: str) -> None:
        if self._train.rank == 0 and words not in self._said:
            self._said.add(words)
            self._observer.on_said(words)


class _StandBack:
    """Keeps a strategy from making the script's variables and data its own; the engine's meetings go on."""

    def __init__(self, strategy: Any, say: Any) -> None:
        self._strategy = strategy
        self._scope = strategy.scope
        self._run = strategy.run
        self._say = say
        self._meeting = False
        strategy.scope = self.scope
        strategy.run = self.run
        strategy.experimental_distribute_dataset = self.distribute
        strategy.distribute_datasets_from_function = self.distribute_from

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Only the engine comes here: a script with a `strategy.run` of its own is none of these."""
        outer, self._meeting = self._meeting, True
        try:
            return self._run(*args, **kwargs)
        finally:
            self._meeting = outer

    def scope(self) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = self._scope() if self._meeting else nullcontext(self._strategy)
        return scope

    def distribute(self, dataset: Any, options: Any = None) -> Any:
        self._say(_WHOLE)
        return dataset

    def distribute_from(self, dataset_fn: Any, options: Any = None) -> Any:
        """One pipeline that reads everything, as on one machine."""
        self._say(_WHOLE)
        return dataset_fn(tf.distribute.InputContext())
