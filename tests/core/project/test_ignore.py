import os
import shutil
import subprocess
from pathlib import Path

import pytest

from core.project.files import list_files
from core.project.ignore import IgnoreRules


def grow(folder: Path, *paths: str) -> None:
    for path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")


def travelling(folder: Path) -> set[str]:
    rules = IgnoreRules(folder)
    listing = list_files(
        folder,
        enter=rules.enter,
        leave_out=lambda path, is_folder: rules.why_left_out(path, is_folder=is_folder),
    )
    return {file.path for file in listing.files} - {".gitignore", ".tandemignore"}


def test_gitignore_counts_and_deeper_ones_win(tmp_path: Path) -> None:
    grow(tmp_path, "train.py", "a.log", "sub/b.log", "sub/keep.log", "data/x.csv", "sub/data/y.csv")
    (tmp_path / ".gitignore").write_text("# comment\n*.log\n/data/\n")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\n")
    assert travelling(tmp_path) == {"train.py", "sub/keep.log", "sub/data/y.csv", "sub/.gitignore"}


def test_tandemignore_overrides_other_rules_in_both_directions(tmp_path: Path) -> None:
    grow(tmp_path, "train.py", "data/x.csv", "notes.txt", ".cache/model.bin", ".env", "venv/x.py")
    (tmp_path / ".gitignore").write_text("data/\n")
    assert travelling(tmp_path) == {"train.py", "notes.txt"}
    (tmp_path / ".tandemignore").write_text("notes.txt\n!data/\n!.cache\n!.env\n")
    assert travelling(tmp_path) == {"train.py", "data/x.csv", ".cache/model.bin", ".env"}


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "__pycache__/x.bin",
        "sub/__pycache__/y.bin",
        ".venv/a",
        "venv/a",
        "node_modules/a/b.js",
        ".ipynb_checkpoints/a.ipynb",
        ".mypy_cache/x",
        "x.pyc",
        ".DS_Store",
        "tandem.egg-info/PKG-INFO",
        "work/pyvenv.cfg",
        "conda/conda-meta/history",
        ".env",
        ".env.local",
        ".envrc",
        ".ssh/config",
        "id_ed25519",
    ],
)
def test_caches_environments_and_secrets_are_not_sent(tmp_path: Path, path: str) -> None:
    grow(tmp_path, "train.py", "env/agent.py", path)
    assert travelling(tmp_path) == {"train.py", "env/agent.py"}


def test_rules_above_count_up_to_the_repository(tmp_path: Path) -> None:
    project = tmp_path / "repository" / "models" / "cnn"
    grow(project, "train.py", "weights.h5", "out/log.txt", "wild.tmp")
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / ".gitignore").write_text("*.h5\n/models/cnn/out\n")
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    assert travelling(project) == {"train.py", "wild.tmp"}


def test_a_folder_that_its_repository_ignores_is_sent_nevertheless(tmp_path: Path) -> None:
    project = tmp_path / "scratch"
    grow(project, "train.py")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("scratch/\n")
    assert travelling(project) == {"train.py"}


def test_no_rules_above_a_repository_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "inner"
    grow(project, "train.py")
    (project / ".git").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.py\n")
    assert travelling(project) == {"train.py"}


def test_invalid_lines_are_skipped(tmp_path: Path) -> None:
    grow(tmp_path, "train.py", "a.log")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf*.log\n!\n[z-a]\n\\\n\xff\xfe\n")
    assert travelling(tmp_path) == {"train.py"}


def test_rules_behind_a_link_or_a_pipe_are_not_read(tmp_path: Path) -> None:
    grow(tmp_path, "train.py", "sub/x.py")
    (tmp_path / "rules").write_text("*.py\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    os.mkfifo(tmp_path / "sub" / ".gitignore")
    assert travelling(tmp_path) == {"train.py", "sub/x.py", "rules"}


@pytest.mark.real
@pytest.mark.parametrize(
    "rules",
    [
        "*\n!*/\n!*.py\n",
        "/*\n!/a\n",
        "a/*\n!a/b\n",
        "**/c\n!x/c\n",
        "b/\n!a/b/\n",
        "a/**/d.txt\n",
        "*.tx?\n!a/\n",
        "\\!odd\n\\#hash\n",
        "trailing\\ \nc.py   \n",
        "a/b\n!a/b/c.py\n",
        "a/**\n!a/c.py\n",
        "/a/b/\n*.py\n!/x/**/*.py\n",
        "b\n",
        "/b\n",
        "a/*\n!a/b/\na/b/*\n!a/b/c.py\n",
        "[a-c].py\n[!x].txt\n",
    ],
)
def test_rules_are_interpreted_as_by_git(tmp_path: Path, rules: str) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    grow(tmp_path, "a/b/c.py", "a/b/d.txt", "a/c.py", "b/x.txt", "c.py", "c.txt", "x/c/y.py", "!odd", "#hash")
    grow(tmp_path, "trailing ", "x/a/b/e.txt")
    (tmp_path / "trailing ").unlink()  # ends in a space: never travels
    (tmp_path / ".gitignore").write_text(rules)
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(tmp_path)}
    environment = {**os.environ, **plain}
    subprocess.run([git, "init", "-q", "."], cwd=tmp_path, env=environment, check=True, timeout=60)
    listed = subprocess.run(
        [git, "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=60,
        capture_output=True,
    )
    assert travelling(tmp_path) == set(listed.stdout.decode().split("\0")) - {"", ".gitignore"}
