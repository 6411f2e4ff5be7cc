"""The vocabulary between a node and its trainer process: JSON lines on two pipes. Imports no TensorFlow.

Orders come on the trainer's order pipe, after it imported TensorFlow; reports go out on the report pipe.
The script's stdout and stderr are the process's own, read by the node as they are.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from core.vocabulary.phases import Exit
from core.vocabulary.plan import StrategyKind, Wire
from core.vocabulary.progress import EpochEnd, Expectation, Progress
from core.vocabulary.waits import Stand
from core.vocabulary.wire import Tagged

# --- node to trainer ---------------------------------------------------------------------------------------


class ExchangeKeys(msgspec.Struct, frozen=True, kw_only=True):
    """With what a trainer meets the others over TLS, at the addresses in TF_CONFIG. Of this run alone."""

    generation: int
    certificates: tuple[bytes, ...]
    """By rank, this trainer's own among them (DER)."""
    private_key: bytes
    """Of the own certificate: the 32 bytes of an Ed25519 key. Nothing shows or keeps it."""

    def __repr__(self) -> str:
        return f"ExchangeKeys(generation={self.generation}, members={len(self.certificates)})"


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """A trainer that meets the others by TensorFlow, which nobody else is to reach: with what its relay meets
    theirs. All by rank, over every task."""

    keys: ExchangeKeys
    outside: tuple[str, ...]
    """``host:port`` where the relays listen."""
    inside: tuple[str, ...]
    """``host:port`` of each on the trainer's own loopback, as in TF_CONFIG."""
    downloads: bool = False
    """The script may call whoever it wants through a proxy."""


class Train(Tagged, frozen=True, kw_only=True):
    """Run a script. ``folder`` is the working copy; ``script`` is relative to it; cwd is the script's folder.

    ``tf_config`` is the exact text of TF_CONFIG, ``""`` for one process alone. ``shares`` in rank order.
    ``peers``: ``name host:port`` of the other tasks, for the words of a verdict.
    """

    run: str
    task: str
    folder: str
    script: str
    arguments: tuple[str, ...] = ()
    tf_config: str = ""
    strategy: StrategyKind = "managed"
    rank: int = 0
    ranks: tuple[int, ...] = ()
    """All of this laptop's, this trainer's among them. More than one: each takes a GPU of its own."""
    shares: tuple[int, ...] = (1,)
    balance: bool = False
    """Shares follow the members' measured speeds; ``shares`` is where they begin."""
    seed: int = 0
    gpus: int | None = None
    """How many of this laptop's GPUs take part; None: all, and one in a managed cluster, whose members need
    not be alike. Those of a script with a loop of its own must: 0 for all where one of them has none."""
    wire: Wire = "f32"
    keep: str = ""
    """The chief's: the folder in which the models that were trained are saved at the end."""
    checkpoints: str = ""
    """The folder of this member's checkpoints, on every member of a managed run; ``""``: none are kept."""
    keep_every_s: float = 60.0
    resume: str = ""
    """The folder of the checkpoint from which the training goes on; alike on every member."""
    peers: dict[str, str] = {}
    """By task name: ``device name at host:port``."""
    meet_timeout_s: float = 60.0
    exchange: ExchangeKeys | None = None
    """None: members meet by TensorFlow."""
    seal: Seal | None = None
    """None: nothing of TensorFlow's is to be sealed."""
    names: tuple[str, ...] = ()
    """Of the members' laptops, by rank, for the words of a verdict; with the task where one has several."""
    linger_s: float = 0.0
    """For so long the run waits for a silent laptop: a member that has finished stays for one that still
    needs what it sent last, and TensorFlow does not give its peers up sooner."""
    temporary: str = ""
    """The folder for temporary files, which ends with the trainer; ``""``: the system's."""

    launched: bool = False
    """Whoever ends the job tells all of its processes (Slurm does): this one leaves that to its parent."""

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """What no other trainer writes to."""
        return tuple(Path(folder) for folder in (self.folder, self.temporary) if folder)


class Stop(Tagged, frozen=True, kw_only=True):
    """End at the end of a step; callbacks' ``on_train_end`` run."""


Order = Train | Stop

# --- trainer to node ---------------------------------------------------------------------------------------


class Booted(Tagged, frozen=True, kw_only=True):
    """TensorFlow is imported; ``devices`` are its GPUs' names, empty for CPU only."""

    seconds: float
    devices: tuple[str, ...]


class Meeting(Tagged, frozen=True, kw_only=True):
    """This trainer listens and waits for the others."""


class Met(Tagged, frozen=True, kw_only=True):
    """Every member answered. ``strategy`` is its name in ``tf.distribute``."""

    strategy: str
    replicas: int


class FitBegan(Tagged, frozen=True, kw_only=True):
    fit: int
    epochs: int
    steps_in_epoch: int | None = None
    global_batch: int | None = None


class Measured(Tagged, frozen=True, kw_only=True):
    """Measured before the first step of a fit; every member measures, and all say the same."""

    expectation: Expectation


class Progressed(Tagged, frozen=True, kw_only=True):
    progress: Progress


class EpochEnded(Tagged, frozen=True, kw_only=True):
    epoch: EpochEnd


class Evaluated(Tagged, frozen=True, kw_only=True):
    """``evaluate`` called by the script itself."""

    logs: dict[str, float]


class Said(Tagged, frozen=True, kw_only=True):
    """Something about the training that the user should read (a fallback, say)."""

    words: str
    difference: bool = False
    """By it the result may differ from one machine's."""


class StandChanged(Tagged, frozen=True, kw_only=True):
    """No meeting with the others has ended for some seconds: what this trainer does. None: it goes on."""

    stand: Stand | None = None


class Ended(Tagged, frozen=True, kw_only=True):
    """The last report. A process that dies without it was killed; its parent says so."""

    exit: Exit


Report = (
    Booted
    | Meeting
    | Met
    | FitBegan
    | Measured
    | Progressed
    | EpochEnded
    | Evaluated
    | Said
    | StandChanged
    | Ended
)
