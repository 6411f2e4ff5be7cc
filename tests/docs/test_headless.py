"""docs/headless.md matches the command line: every subcommand, exit code and field of a report."""

import re
from pathlib import Path

import pytest

from app.cli.command_line import SUBCOMMANDS
from app.cli.exit_codes import ExitCode
from app.demo.report import Report

PAGE = (Path(__file__).parents[2] / "docs" / "headless.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_is_explained(name: str) -> None:
    assert f"| `tandem {name.replace('_', '-')}" in PAGE


def test_the_exit_codes_are_the_ones_there_are() -> None:
    table = PAGE.split("## Exit codes")[1].split("##")[0]
    told = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| ([a-z ]+)", table, re.M)}
    assert {code: meaning.strip() for code, meaning in told.items()} == {
        code.value: code.name.lower().replace("_", " ") for code in ExitCode
    }


def test_every_field_of_the_demos_object_is_named() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `demo` |"))
    assert all(f"`{name}`" in row for name in Report.__struct_fields__)
