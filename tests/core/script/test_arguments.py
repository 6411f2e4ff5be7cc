"""The options that a script declares, and the values they would refuse."""

from __future__ import annotations

import argparse
import ast

import pytest

from core.script.arguments import declared, refused
from core.script.imports import Module
from core.script.syntax import SourceTree
from core.vocabulary.answers import Declared

HEAD = "import argparse\nparser = argparse.ArgumentParser()\n"
SCRIPT = HEAD + (
    "parser.add_argument('--epochs', '-e', type=int, default=5, help='How long to train')\n"
    "parser.add_argument('--lr', type=float, default=1e-3)\n"
    "parser.add_argument('--optimizer', choices=['adam', 'sgd'], default='adam')\n"
    "parser.add_argument('--fast', action='store_true')\n"
    "parser.add_argument('--layers', type=int, nargs='+')\n"
    "parser.add_argument('--size', type=int, choices=[1, 2])\n"
    "parser.add_argument('--own', type=lambda text: text)\n"
    "parser.add_argument('data', nargs='?')\n"
)


def options(text: str) -> tuple[Declared, ...]:
    return declared(SourceTree(Module(path="a.py", tree=ast.parse(text))))


def test_what_is_declared_is_read_with_defaults_choices_and_help() -> None:
    epochs, lr, optimizer, fast, layers, size, own = options(SCRIPT)
    assert epochs == Declared(
        names=("--epochs", "-e"), takes=True, kind="int", default="5", help="How long to train"
    )
    assert (lr.kind, lr.default) == ("float", "0.001")
    assert (optimizer.choices, optimizer.default) == (("adam", "sgd"), "adam")
    assert not fast.takes and not layers.takes
    assert (size.kind, size.choices, own.kind) == ("", (), "")


@pytest.mark.parametrize(
    "text",
    [
        "parser.add_argument('--epochs', type=int)",
        SCRIPT + "other = argparse.ArgumentParser()\n",
        SCRIPT + "parser.add_subparsers()\n",
        HEAD + "parser.add_argument(NAME, type=int)\nparser.add_argument('--x', **given)\n",
    ],
)
def test_what_is_not_certain_is_left_out(text: str) -> None:
    assert options(text) == ()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epochs ten", ["--epochs must be a whole number, not ten."]),
        ("-e 1.5", ["-e must be a whole number, not 1.5."]),
        ("--lr=fast", ["--lr must be a number, not fast."]),
        ("--optimizer adm", ["--optimizer must be one of adam, sgd, not adm."]),
        ("--epochs", ["--epochs needs a value."]),
        ("--epochs --fast", ["--epochs needs a value."]),
        ("--epochs 3 --lr -0.5 --optimizer=sgd --fast --layers 1 2 --size 2 --own x data", []),
    ],
)
def test_exactly_what_argparse_refuses_is_told(words: str, told: list[str]) -> None:
    assert refused(words.split(), options(SCRIPT)) == told
    namespace: dict[str, argparse.ArgumentParser] = {}
    exec(SCRIPT, namespace)
    if told:
        with pytest.raises(SystemExit):
            namespace["parser"].parse_args(words.split())
    else:
        namespace["parser"].parse_args(words.split())


def test_nothing_is_told_of_what_is_not_declared_or_stands_behind_two_dashes() -> None:
    assert refused(["--depth", "x", "--epo", "x", "--", "--epochs", "x"], options(SCRIPT)) == []
