"""The wheel beside a user's own packages `app`, `core` and `resources`, and a developer's installation."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from core.vocabulary.versions import TANDEM

ROOT = Path(__file__).parents[2]
LIMIT_S = 240
OWN = ("app", "core", "resources")
SCRIPT = """\
import multiprocessing

import app
import core.deep
import resources


def told(number):
    import core
    return core.NAME, number


if __name__ == "__main__":
    import keras
    import numpy as np

    print("mine:", app.NAME, core.NAME, core.deep.NAME, resources.NAME, flush=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("in a process of mine:", pool.map(told, [7]), flush=True)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((32, 2)), np.ones((32, 1)), batch_size=8, verbose=0)
    print("trained", flush=True)
"""

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)
    (made,) = folder.glob("*.whl")
    return made


class Environment:
    """A user's: a new one that borrows today's dependencies, so that nothing is fetched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, symlinks=True)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        lent = [entry for entry in sys.path if Path(entry).name == "site-packages"]
        (self.packages / "lent.pth").write_text("\n".join(lent) + "\n")
        self.place = folder.with_name("project")
        self.place.mkdir()

    def run(self, program: str, *arguments: str, any_status: bool = False) -> str:
        return done([str(self.folder / "bin" / program), *arguments], self.place, any_status)

    def pip(self, *arguments: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        done([*pip, *arguments, "--quiet", "--disable-pip-version-check"], self.place)

    def has_packages_of_its_own(self) -> None:
        for name in OWN:
            (self.packages / name).mkdir()
            (self.packages / name / "__init__.py").write_text(f"NAME = 'their {name}'\n")
        (self.packages / "core" / "deep.py").write_text("NAME = 'deep in theirs'\n")
        (self.packages / "resources" / "data.bin").write_bytes(bytes(range(256)))

    def bytes(self) -> dict[str, str]:
        """Contents of every file: pip's additions and removals must cancel out."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }


def done(command: list[str], place: Path, any_status: bool = False) -> str:
    """Returns its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "TANDEM_HOME": str(place / "home")}
    ended = subprocess.run(
        command,
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert any_status or not ended.returncode, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "env")


def test_the_wheel_holds_one_package_of_ours(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "tandem_laptops",
        f"tandem_laptops-{TANDEM}.dist-info",
    }
    inside = {name.removeprefix("tandem_laptops/house/") for name in names if "/house/" in name}
    tracked = done(["git", "ls-files", *OWN], ROOT).split()
    assert set(tracked) <= inside, "with all that belongs to it, pictures and examples included"
    assert not [name for name in inside if name.endswith((".keras", ".pyc"))]


@pytest.mark.cluster
def test_a_users_own_packages_stay_as_they_are(environment: Environment, wheel: Path) -> None:
    environment.has_packages_of_its_own()
    before = environment.bytes()
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    installed = environment.bytes()
    assert {name: installed[name] for name in before} == before
    assert "bin/tandem" in installed and "bin/tandem-gui" in installed

    told = environment.run("tandem", "--version")
    assert told.startswith(f"Tandem {TANDEM} (Python 3.") and "missing" not in told
    own = environment.run("python", "-c", "import core; print(core.__file__)").strip()
    assert own == str(environment.packages / "core" / "__init__.py")
    # Its status is about this machine (a firewall, say).
    told = environment.run("tandem", "doctor", "--json", "--deep", any_status=True)
    doctor = json.loads(told.splitlines()[-1])
    assert "tensorflow-loads" in {finding["code"] for finding in doctor["findings"]}

    script = environment.place / "train.py"
    script.write_text(SCRIPT)
    environment.run("tandem", "run", str(script), "--solo", "--json")
    (run,) = (environment.place / "home" / "runs").glob("*/")
    logged = "".join(path.read_text() for path in run.rglob("*.log"))
    assert "mine: their app their core deep in theirs their resources" in logged
    assert "in a process of mine: [('their core', 7)]" in logged
    assert "trained" in logged

    environment.pip("uninstall", "--yes", "tandem-laptops")
    assert environment.bytes() == before


def test_a_developer_installs_the_checkout_itself(environment: Environment) -> None:
    environment.pip("install", "--no-deps", "--no-build-isolation", "--no-index", "--editable", str(ROOT))
    assert environment.run("tandem", "--version").startswith(f"Tandem {TANDEM} ")
    found = environment.run("python", "-c", "import app, core, resources; print(core.__file__)").strip()
    assert found == str(ROOT / "core" / "__init__.py")
