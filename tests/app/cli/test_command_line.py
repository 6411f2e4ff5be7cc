import pytest

from app.cli import command_line
from app.cli.exit_codes import ExitCode


def test_what_follows_two_dashes_belongs_to_the_script() -> None:
    read = command_line.read(["run", "train.py", "--with", "anna", "--", "--epochs", "3", "--", "x"])
    assert read.script == "train.py"
    assert read.others == "anna"
    assert read.script_arguments == ("--epochs", "3", "--", "x")


@pytest.mark.parametrize("argv", [["--home", "/h", "devices"], ["devices", "--home", "/h"]])
def test_a_home_is_named_before_or_after_the_subcommand(argv: list[str]) -> None:
    assert str(command_line.home_of(command_line.read(argv)).folder) == "/h"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run", "train.py", "--epochs", "3"], "tandem run SCRIPT -- --epochs 3"),
        (["run", "train.py", "--see", "3"], "Not understood: --see 3"),
        (["devices", "--", "x"], "Not understood: -- x.\nSee: tandem devices --help\n"),
        (["clear", "x"], "Not understood: x.\nSee: tandem clear --help\n"),
        (["trian"], "invalid choice: 'trian'"),
        (["run"], "SCRIPT --again"),
        (["run", "a.py", "--again", "2026"], "not allowed with"),
        (["run", "a.py", "--solo", "--with", "b"], "not allowed with"),
        (["demo", "--nodes", "5"], "invalid choice: 5"),
        (["demo", "--epochs", "0"], "from 1 to 1000"),
    ],
)
def test_what_is_not_understood_is_named_and_nothing_is_done(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.read(argv)
    assert ended.value.code == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert said in shown
    assert "--help" in shown


@pytest.mark.parametrize("name", [*command_line.SUBCOMMANDS])
def test_every_subcommand_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.read([name.replace("_", "-"), "--help"])
    assert ended.value.code == 0
    assert "usage: tandem" in capsys.readouterr().out


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.read(["--help"])
    shown = capsys.readouterr().out
    assert all(f"  {code.value:>3}  " in shown for code in ExitCode)


def test_resume_has_a_value_for_every_option_of_run() -> None:
    run = command_line.read(["run", "train.py"])
    resume = command_line.read(["resume", "20261122-133000-abcdef01"])
    assert vars(run).keys() - vars(resume).keys() == set(), "app/cli/spec.py reads both"
