"""Trains nothing: shows where and how it runs, and prints megabytes."""

import os
import sys
from pathlib import Path

import beside
from core.deep import depth

import app
import core

print("argv", sys.argv)
print("name", __name__)
print("cwd", Path.cwd())
print("told of a cluster", [name for name in os.environ if name.startswith("TF_CONFIG")])
print("beside", beside.WORDS, Path("beside.txt").read_text().strip())
# Not ours: those that lie beside the script.
print("theirs", app.WHOSE, core.WHOSE, depth)  # type: ignore[attr-defined]
for _ in range(40_000):
    print("x" * 99)
print("the last words", file=sys.stderr)
