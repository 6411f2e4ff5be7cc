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
    "parser.add_argument('--augment', action=argparse.BooleanOptionalAction)\n"
    "parser.add_argument('data', nargs='?')\n"
)
ABSL = (
    "from absl import app, flags\n"
    "flags.DEFINE_integer('epochs', 5, 'How long to train', lower_bound=1)\n"
    "flags.DEFINE_float('lr', 1e-3, 'Learning rate')\n"
    "flags.DEFINE_enum('optimizer', 'adam', ['adam', 'sgd'], 'Which')\n"
    "flags.DEFINE_bool('fast', False, 'Skip the checks')\n"
    "flags.DEFINE_string('name', None, help='Of the run')\n"
    "flags.DEFINE_list('layers', [], 'Sizes')\n"
)
CLICK = (
    "import click\n"
    "@click.command()\n"
    "@click.option('--epochs', '-e', default=5, help='How long to train')\n"
    "@click.option('--lr', 'rate', type=float, default=1e-3, show_default=True)\n"
    "@click.option('--optimizer', type=click.Choice(['adam', 'sgd']), default='adam')\n"
    "@click.option('--loss', type=click.Choice(['mse', 'mae'], case_sensitive=False))\n"
    "@click.option('--fast', is_flag=True)\n"
    "@click.option('--shuffle/--no-shuffle', default=True)\n"
    "@click.option('--layers', multiple=True, type=int)\n"
    "@click.option('-v', count=True)\n"
    "@click.argument('data')\n"
    "def main(**given): ...\n"
)


PLACED = HEAD + (
    "parser.add_argument('data', help='A folder')\n"
    "parser.add_argument('size', type=int)\n"
    "parser.add_argument('kind', nargs='?', choices=['a', 'b'])\n"
    "parser.add_argument('--epochs', type=int)\n"
    "parser.add_argument('--rate', type=float, required=True)\n"
    "parser.add_argument('--fast', action='store_true')\n"
    "parser.add_argument('--layers', nargs='+')\n"
)


def options(text: str) -> tuple[Declared, ...]:
    return declared(SourceTree(Module(path="a.py", tree=ast.parse(text))))


def test_declared_options_are_read_with_defaults_choices_and_help() -> None:
    epochs, lr, optimizer, fast, layers, size, own, augment, data = options(SCRIPT)
    assert epochs == Declared(
        names=("--epochs", "-e"), takes=True, kind="int", default="5", help="How long to train"
    )
    assert (lr.kind, lr.default) == ("float", "0.001")
    assert (optimizer.choices, optimizer.default) == (("adam", "sgd"), "adam")
    assert not fast.takes and not layers.takes and not augment.takes
    assert fast.switch and not layers.switch and not augment.switch
    assert (size.kind, size.choices, own.kind) == ("", (), "")
    assert data == Declared(names=("data",)) and data.is_positional


def test_flags_of_absl_are_read() -> None:
    epochs, lr, optimizer, fast, name, layers = options(ABSL)
    assert epochs == Declared(names=("--epochs",), kind="int", default="5", help="How long to train")
    assert (lr.kind, lr.default, name.default, name.help) == ("float", "0.001", "", "Of the run")
    assert optimizer.choices == ("adam", "sgd")
    assert fast.switch and not fast.takes
    assert layers.takes and not layers.kind


def test_options_of_click_are_read() -> None:
    epochs, lr, optimizer, loss, fast, shuffle, layers, verbose = options(CLICK)
    assert epochs == Declared(names=("--epochs", "-e"), kind="int", default="5", help="How long to train")
    assert (lr.names, lr.kind, lr.default) == (("--lr",), "float", "0.001")
    assert (optimizer.choices, loss.choices) == (("adam", "sgd"), ())
    assert fast.switch and not fast.takes
    assert shuffle.names == ("--shuffle", "--no-shuffle") and not shuffle.takes and not shuffle.switch
    assert layers.takes and layers.kind == "int"
    assert not verbose.takes and not verbose.switch
    assert options(CLICK.replace("command()", "command")) == options(CLICK), "as people write it since 8.1"


@pytest.mark.parametrize(
    "text",
    [
        CLICK + "@click.command()\n@click.option('--other')\ndef other(): ...\n",
        "import click\n@click.group()\n@click.option('--epochs', type=int)\ndef main(): ...\n",
        "parser.add_argument('--epochs', type=int)",
        SCRIPT + "other = argparse.ArgumentParser()\n",
        SCRIPT + "parser.add_subparsers()\n",
        HEAD + "parser.add_argument(NAME, type=int)\nparser.add_argument('--x', **given)\n",
    ],
)
def test_uncertain_declarations_are_left_out(text: str) -> None:
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
        ("--augment --no-augment", []),
        ("--epochs 3 --lr -0.5 --optimizer=sgd --fast --layers 1 2 --size 2 --own x data", []),
    ],
)
def test_exactly_what_argparse_refuses_is_reported(words: str, told: list[str]) -> None:
    assert refused(words.split(), options(SCRIPT)) == told
    namespace: dict[str, argparse.ArgumentParser] = {}
    exec(SCRIPT, namespace)
    if told:
        with pytest.raises(SystemExit):
            namespace["parser"].parse_args(words.split())
    else:
        namespace["parser"].parse_args(words.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", ["--rate is missing.", "data is missing.", "size is missing."]),
        ("x --rate 1", ["size is missing."]),
        ("x two --rate 1", ["size must be a whole number, not two."]),
        ("--rate 1 --epochs 3 x 2 c", ["kind must be one of a, b, not c."]),
        ("--fast x --rate=1 2", []),
        ("--rate 1 -- x 2", []),
        ("x 2 b --rate 1 --epochs 2", []),
    ],
)
def test_positional_arguments_are_checked_as_argparse_does(words: str, told: list[str]) -> None:
    assert refused(words.split(), options(PLACED)) == told
    namespace: dict[str, argparse.ArgumentParser] = {}
    exec(PLACED, namespace)
    if told:
        with pytest.raises(SystemExit):
            namespace["parser"].parse_args(words.split())
    else:
        namespace["parser"].parse_args(words.split())


@pytest.mark.parametrize(
    "line",
    [
        "parser.add_argument(NAME)\n",
        "parser.add_argument('more', nargs='*')\n",
        "parser.add_argument('last')\n",
        "parser.add_argument('--x', **given)\n",
    ],
)
def test_positional_arguments_that_others_may_move_are_left_out(line: str) -> None:
    assert [each.names[0] for each in options(PLACED + line) if each.is_positional] == []
    assert options(PLACED + line)[0].names == ("--epochs",)
    files = PLACED.replace("ArgumentParser()", "ArgumentParser(fromfile_prefix_chars='@')")
    assert refused(["@arguments.txt", "--rate", "1"], options(files)) == []


def test_words_that_no_declaration_explains_make_no_positional_argument_wrong() -> None:
    for words in ("--layers 1 2 x", "--unknown 3", "-1"):
        assert refused(words.split(), options(PLACED)) == []


def test_undeclared_options_and_words_after_two_dashes_are_not_checked() -> None:
    assert refused(["--depth", "x", "--epo", "x", "--", "--epochs", "x"], options(SCRIPT)) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epochs ten", ["--epochs must be a whole number, not ten."]),
        ("--lr=fast", ["--lr must be a number, not fast."]),
        ("--optimizer adm", ["--optimizer must be one of adam, sgd, not adm."]),
        ("--lr", ["--lr needs a value."]),
        ("--name --fast --epochs 0x10 --nofast --fast=true --layers 1,2", []),
    ],
)
def test_exactly_what_absl_refuses_is_reported(words: str, told: list[str]) -> None:
    from absl import flags

    assert refused(words.split(), options(ABSL)) == told
    values = flags.FlagValues()  # type: ignore[no-untyped-call]
    for line in ABSL.splitlines()[1:]:
        exec(line[:-1] + ", flag_values=values)", {"flags": flags, "values": values})
    if told:
        with pytest.raises(flags.Error):
            values(["train.py", *words.split()])
    else:
        values(["train.py", *words.split()])
