"""Messages between a node and its trainer process: JSON lines on two pipes. Imports no TensorFlow.

Orders arrive on the order pipe, once the trainer has imported TensorFlow; reports leave on the report pipe.
Stdout and stderr belong to the script; the node reads them as they are.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from core.vocabulary.access import Grants
from core.vocabulary.bounds import (
    LOG,
    Argument,
    Detail,
    Few,
    FewBy,
    FilePath,
    Key,
    Logs,
    LogText,
    Many,
    Name,
    Variable,
    Words,
    fit,
)
from core.vocabulary.options import RunOptions
from core.vocabulary.phases import Exit
from core.vocabulary.plan import StrategyKind
from core.vocabulary.progress import EpochEnd, Expectation, Progress
from core.vocabulary.waits import TrainerStatus
from core.vocabulary.wire import Tagged

# --- node to trainer ---------------------------------------------------------------------------------------


class ExchangeKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A trainer's keys for meeting the others over TLS, at the addresses in TF_CONFIG. For this run only."""

    generation: int
    certificates: Few[Key]
    """The members' certificates by rank, including this trainer's own (DER)."""
    private_key: Key
    """The private key of its certificate: the 32 bytes of an Ed25519 key. It is never shown or stored."""

    def __repr__(self) -> str:
        return f"ExchangeKeys(generation={self.generation}, members={len(self.certificates)})"


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """For a trainer that meets the others through TensorFlow, unreachable for anybody else: the addresses and
    keys of the relays. All by rank, over every task."""

    keys: ExchangeKeys
    outside: Few[Name]
    """``host:port`` where the relays listen."""
    inside: Few[Name]
    """``host:port`` of each on the trainer's own loopback, as in TF_CONFIG."""
    downloads: bool = False
    """The script may connect to any address through a proxy."""


class Enclosure(msgspec.Struct, frozen=True, kw_only=True):
    """The files and network that a walled trainer may use (``core.walls``). Every path is absolute."""

    folders: Few[FilePath]
    """Readable and writable."""
    home: FilePath
    """The one of them that replaces the user's home: it holds the script's caches and settings."""
    user: FilePath
    """The user's own home, where only Keras' downloads are accessible."""
    tandem: FilePath = ""
    """This Tandem's own home, with its key; ``""``: it lies in the user's."""
    keras: FilePath = ""
    """The folder of Keras' downloads for this user, if not in the home."""
    reads: Few[FilePath] = ()
    opened: Grants = ()
    """Additional access that this user allowed."""
    port: int = 0
    """TCP port on which it may listen; 0: none."""
    calls: Few[int] | None = ()
    """Ports that it may connect to. None: all, since it has a network of its own."""
    downloads: bool = False
    """Downloads through a proxy, if it shares the laptop's network."""

    @property
    def private(self) -> tuple[str, ...]:
        """Folders that no readable folder may contain."""
        return (self.user, *filter(None, [self.tandem]), *self.folders)


class Become(Tagged, frozen=True, kw_only=True):
    """The first order to a trainer that was kept ready: the setup that other trainers are started with."""

    environment: Many[Variable]
    """``NAME=value`` as bytes: POSIX paths need not be text."""
    sealed: bool = False
    walls: Enclosure | None = None

    def __repr__(self) -> str:
        return f"Become(sealed={self.sealed}, walls={self.walls})"


class Train(Tagged, frozen=True, kw_only=True):
    """Run a script. ``folder`` is the working copy; ``script`` is relative to it; cwd is the script's folder.

    ``tf_config`` is the exact text of TF_CONFIG, ``""`` for a single process. ``shares`` in rank order.
    ``peers``: ``name host:port`` of the other tasks, for the text of a verdict.
    """

    run: Name
    task: Name
    folder: FilePath
    script: FilePath
    arguments: Many[Argument] = ()
    tf_config: Detail = ""
    strategy: StrategyKind = "managed"
    rank: int = 0
    ranks: Few[int] = ()
    """All ranks on this laptop, including this trainer's. More than one: each takes a GPU of its own."""
    shares: Few[int] = (1,)
    balance: bool = False
    """Shares follow the members' measured speeds; ``shares`` are the initial ones."""
    seed: int = 0
    gpus: int | None = None
    """How many of this laptop's GPUs take part; None: all, or one in a managed cluster. Members of a custom
    training loop must be alike: 0 for all if one of them has none."""
    options: RunOptions = RunOptions()
    keep: FilePath = ""
    """On the chief: the folder for the trained models at the end."""
    checkpoints: FilePath = ""
    """The folder of this member's checkpoints, on every member of a managed run; ``""``: none are kept."""
    keep_every_s: float | None = None
    """Seconds of training between two checkpoints; None: depends on the cost of one."""
    resume: FilePath = ""
    """The folder of the checkpoint from which the training goes on; identical on every member."""
    peers: FewBy[Name, Words] = {}
    """``device name at host:port``, by task name."""
    meet_timeout_s: float = 60.0
    exchange: ExchangeKeys | None = None
    """None: members meet through TensorFlow."""
    seal: Seal | None = None
    """None: TensorFlow's communication need not be sealed."""
    walls: Enclosure | None = None
    """None: the script is this laptop's own, with its user's access."""
    names: Few[Words] = ()
    """The members' laptops by rank, for the text of a verdict; with the task where one has several."""
    linger_s: float = 0.0
    """How long the run waits for a silent laptop: a finished member stays for others that still need its last
    messages, and TensorFlow gives up on peers no sooner."""
    temporary: FilePath = ""
    """The folder for temporary files, deleted with the trainer; ``""``: the system's."""

    agreed: FilePath = ""
    """Path of the manifest that the other laptops' users consented to: the script runs only if ``folder``
    still matches. ``""``: ``folder`` is a copy, checked when made, or nobody was asked."""
    data: FewBy[FilePath, FilePath] = {}
    """Places of data here, by the places on the starter's laptop that the script's text names."""
    stands_in: bool = False
    """A lost laptop will take the training back: at the end a checkpoint is kept for it."""
    launched: bool = False
    """The launcher signals all of the job's processes at its end, as Slurm does: ignore that, and leave it to
    the parent."""

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Folders that no other trainer writes to."""
        return tuple(Path(folder) for folder in (self.folder, self.temporary) if folder)


class MeetWithout(Tagged, frozen=True, kw_only=True):
    """Go on without members that are gone for good, from the remaining members' common step.

    ``generation``: larger than any before. Ranks keep their numbers.
    """

    generation: int
    gone: Few[int]
    """Ranks: these and all named before."""


class Stop(Tagged, frozen=True, kw_only=True):
    """End at the end of a step; callbacks' ``on_train_end`` run."""

    leaves: bool = False
    """Only this member ends, at once after its step, and the others go on."""


Order = Become | Train | MeetWithout | Stop

# --- trainer to node ---------------------------------------------------------------------------------------


class Booted(Tagged, frozen=True, kw_only=True):
    """TensorFlow is imported; ``devices`` are its GPUs' names, empty for CPU only."""

    seconds: float
    devices: Few[Name]


class Connecting(Tagged, frozen=True, kw_only=True):
    """This trainer listens and waits for the others."""


class Met(Tagged, frozen=True, kw_only=True):
    """Every member answered. ``strategy`` is its name in ``tf.distribute``."""

    strategy: Name
    replicas: int


class FitBegan(Tagged, frozen=True, kw_only=True):
    fit: int
    epochs: int
    steps_in_epoch: int | None = None
    global_batch: int | None = None


class Measured(Tagged, frozen=True, kw_only=True):
    """Measurements before the first step of a fit; every member measures, and all report the same."""

    expectation: Expectation


class Progressed(Tagged, frozen=True, kw_only=True):
    progress: Progress


class EpochEnded(Tagged, frozen=True, kw_only=True):
    epoch: EpochEnd


class Evaluated(Tagged, frozen=True, kw_only=True):
    """The script itself called ``evaluate``."""

    logs: Logs


class Said(Tagged, frozen=True, kw_only=True):
    """A message about the training that the user should read (such as a fallback)."""

    words: LogText
    difference: bool = False
    """The result may therefore differ from one machine's."""

    def __post_init__(self) -> None:
        fit(self, words=LOG)


class StatusChanged(Tagged, frozen=True, kw_only=True):
    """This trainer's activity after some seconds without completing an exchange. None: it continues."""

    status: TrainerStatus | None = None


class Kept(Tagged, frozen=True, kw_only=True):
    """A checkpoint was written."""


class Ended(Tagged, frozen=True, kw_only=True):
    """The last report. If a process dies without it, its parent reports why."""

    exit: Exit


Report = (
    Booted
    | Connecting
    | Met
    | FitBegan
    | Measured
    | Progressed
    | EpochEnded
    | Evaluated
    | Said
    | StatusChanged
    | Kept
    | Ended
)
