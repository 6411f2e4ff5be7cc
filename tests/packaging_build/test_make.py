"""What `make` installs into its environment, with a Python that only records its arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """\
#!/bin/sh
echo "$*" >> "$TOLD"
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


def installed(folder: Path, nvidia_smi: str | None) -> tuple[str, str]:
    """Python's last arguments, and the output of `make`. ``nvidia_smi``: the program's text."""
    (folder / "bin").mkdir()
    programs = {"python": PYTHON} | ({"nvidia-smi": nvidia_smi} if nvidia_smi is not None else {})
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    told = folder / "told"
    ready = folder / "venv" / "ready"
    done = subprocess.run(
        ["make", f"PYTHON={folder / 'bin' / 'python'}", f"VENV={ready.parent}", str(ready)],
        cwd=ROOT,
        env={**os.environ, "TOLD": str(told), "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "MAKEFLAGS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert ready.exists()
    return told.read_text().splitlines()[-1], done.stdout


@pytest.mark.real
def test_a_card_that_answers_gets_its_tensorflow(tmp_path: Path) -> None:
    asked, said = installed(tmp_path, "#!/bin/sh\necho 'GPU 0: NVIDIA Test'\n")
    assert asked.endswith("--editable .[dev,gpu]")
    assert "CUDA" in said


@pytest.mark.real
@pytest.mark.parametrize("nvidia_smi", ["#!/bin/sh\nexit 9\n", None], ids=["broken driver", "no driver"])
def test_without_a_card_that_answers_nothing_of_it_is_fetched(tmp_path: Path, nvidia_smi: str | None) -> None:
    asked, said = installed(tmp_path, nvidia_smi)
    assert asked.endswith("--editable .[dev]")
    assert "CUDA" not in said.replace("nvidia-smi", "")
