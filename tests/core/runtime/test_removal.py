"""Removing folders left by a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from core.runtime.removal import remove_tree

FEW_DESCRIPTORS = 512
DEEPER_THAN_PYTHON_RECURSES = 3 * sys.getrecursionlimit()


@pytest.mark.skipif(sys.platform == "win32", reason="paths are short there")
@pytest.mark.parametrize("descriptors", [FEW_DESCRIPTORS, 2 * DEEPER_THAN_PYTHON_RECURSES])
def test_a_tree_deeper_than_python_recurses_is_removed_and_links_are_not_followed(
    tmp_path: Path, descriptors: int
) -> None:
    import resource

    kept, top = tmp_path / "kept", tmp_path / "top"
    kept.mkdir()
    (kept / "file").write_text("mine")
    top.mkdir()
    at = os.open(top, os.O_RDONLY)
    for _ in range(DEEPER_THAN_PYTHON_RECURSES):
        os.mkdir("d", dir_fd=at)
        os.symlink(kept, "link", dir_fd=at)
        inside = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inside
    os.close(at)
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(descriptors, hard), hard))
    try:
        remove_tree(top)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    assert not top.exists()
    assert (kept / "file").read_text() == "mine"


def test_an_ordinary_tree_goes_and_one_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("x")
    for _ in range(2):
        remove_tree(tmp_path / "a")
        assert not (tmp_path / "a").exists()
