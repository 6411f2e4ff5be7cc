"""A node's home: the folder of all its files, which only its user may enter. Blocks: use a thread."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from core.home.private_file import user_id
from core.vocabulary.errors import TandemError

ENVIRONMENT = "TANDEM_HOME"
_OWN = ("identity", "trust.json", "settings.json", "logs", "runs", "projects", "node.lock")


@dataclass(frozen=True, slots=True)
class Home:
    """The folder and the names in it."""

    folder: Path

    @property
    def identity(self) -> Path:
        return self.folder / "identity"

    @property
    def trust(self) -> Path:
        return self.folder / "trust.json"

    @property
    def settings(self) -> Path:
        return self.folder / "settings.json"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def projects(self) -> Path:
        return self.folder / "projects"

    @property
    def sweeps(self) -> Path:
        return self.folder / "sweeps"

    @property
    def received(self) -> Path:
        """Reports that other laptops sent."""
        return self.folder / "received"

    @property
    def hashes(self) -> Path:
        """Hashes of the files of projects that were read here."""
        return self.folder / "hashes"

    @property
    def temporary(self) -> Path:
        """Trainers' temporary files."""
        return self.folder / "tmp"

    @property
    def loading(self) -> Path:
        """TensorFlow's loading times."""
        return self.folder / "loading.json"

    @property
    def rates(self) -> Path:
        """Rates of transfers."""
        return self.folder / "rates.json"

    @property
    def lock(self) -> Path:
        return self.folder / "node.lock"

    @property
    def socket(self) -> Path:
        return self.folder / "node.sock"

    @property
    def loopback(self) -> Path:
        """Port and secret of a node that cannot have a Unix socket."""
        return self.folder / "node.port"

    @property
    def examples(self) -> Path:
        """Copies of the shipped examples that were chosen in the window, with their runs' outputs."""
        return self.folder / "examples"

    def own(self) -> tuple[Path, ...]:
        """All files and folders that Tandem makes in its home, the lock last."""
        settings = (self.identity, self.trust, self.settings, self.loading, self.rates)
        work = (self.logs, self.runs, self.sweeps, self.projects, self.hashes, self.temporary, self.examples)
        ends = (self.socket, self.folder / "node.sock.path", self.loopback, self.lock)
        return (*settings, *work, self.received, *ends)


def choose(given: str | Path | None = None) -> Home:
    """The home: ``given`` (``--home``), else ``TANDEM_HOME``, else the platform's folder for a user's data.
    Raises ``TandemError``."""
    chosen = str(given or os.environ.get(ENVIRONMENT, ""))
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_data_dir("tandem", appauthor=False)
    try:
        return Home(Path(chosen).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise TandemError(
            code="home-unusable",
            what=f"{chosen[:200]!r} can't be used as Tandem's home ({error}).",
            fix="Name another folder with --home DIR.",
        ) from error


def prepare(home: Home) -> None:
    """Make the home (0700) or check that it is one. Raises ``TandemError`` with the fix."""
    folder = home.folder
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
        _check_owner(folder)
        names = {entry.name for entry in folder.iterdir()}
        if names and names.isdisjoint(_OWN):
            # Closing a folder such as ~ or /tmp to everybody else would break other programs.
            raise TandemError(
                code="home-not-empty",
                what=f"{folder} contains other files and is not a Tandem home.",
                fix="Name an empty or a new folder with --home DIR.",
            )
        if os.name == "posix" and stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        for part in (home.logs, home.runs, home.projects):
            part.mkdir(mode=0o700, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise TandemError(
            code="home-unusable",
            what=f"Tandem can't write in its home {folder} ({error.strerror or error}).",
            fix=_mend(folder),
        ) from error


def _mend(folder: Path) -> str:
    if os.path.isdir(folder):  # noqa: PTH112  (never raises, whatever keeps us out)
        return (
            f"Make it writable for you (chmod u+rwx '{folder}'), free some space, "
            "or name another folder with --home DIR."
        )
    return "No folder can be made there: name another one with --home DIR."


def _check_owner(folder: Path) -> None:
    owner = folder.stat().st_uid
    if owner != user_id():
        raise TandemError(
            code="home-wrong-owner",
            what=f"Tandem's home {folder} belongs to user {owner}, and Tandem runs as user {user_id()}.",
            fix="Run Tandem as the user who made it, or name another folder with --home DIR.",
        )
