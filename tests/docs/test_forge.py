"""Workflows, templates and hooks: everything they name exists. Nothing else runs them here."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.vocabulary.versions import TANDEM

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.M))


def supported_pythons() -> list[str]:
    bounds = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["project"]["requires-python"])
    assert bounds is not None
    return [f"3.{minor}" for minor in range(int(bounds[1]), int(bounds[2]))]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = read(path)["jobs"]
    return found


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in jobs(path).values():
        yield from job["steps"]


def commands(path: Path) -> list[list[str]]:
    lines = "\n".join(step.get("run", "") for step in steps(path)).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def pythons_of(job: dict[str, Any]) -> Any:
    return job.get("strategy", {}).get("matrix", {}).get("python", [])


def test_there_are_workflows_templates_and_hooks() -> None:
    assert len(WORKFLOWS) >= 2
    assert len(TEMPLATES) >= 4


def test_the_checks_run_on_every_python_that_is_supported() -> None:
    for job in jobs(ROOT / ".github/workflows/checks.yml").values():
        assert pythons_of(job) == supported_pythons()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_only_what_is_there(path: Path) -> None:
    made = {command[1] for command in commands(path) if command[0] == "make"}
    assert made <= TARGETS
    assert made, "the same targets as by hand"
    for job in jobs(path).values():
        assert set(pythons_of(job)) <= set(supported_pythons())
    for step in steps(path):
        told = step.get("with", {}).get("python-version", "${{")
        assert told.startswith("${{") or told in supported_pythons()
        assert (ROOT / step.get("with", {}).get("cache-dependency-path", ".")).exists()
    for command in commands(path):
        if "-m" in command[3:]:
            assert command[command.index("-m", 3) + 1] in MAKEFILE, "the same tests as those of a target"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_ends(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]
    assert all(0 < job["timeout-minutes"] <= 120 for job in workflow["jobs"].values())
    assert not re.search(r"secrets\.|pull_request_target", path.read_text(encoding="utf-8"))
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), (
                "the forge's own, of a pinned major version"
            )


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_asks_something(path: Path) -> None:
    template = read(path)
    if path.name == "config.yml":
        assert template == {"blank_issues_enabled": False}
        return
    fields = [field for field in template["body"] if field["type"] != "markdown"]
    assert template["name"] and template["description"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_hooks_fetch_nothing_and_run_what_the_development_extra_brings() -> None:
    brought = {re.split(r"[>=<\[]", name)[0] for name in PROJECT["project"]["optional-dependencies"]["dev"]}
    (repository,) = read(HOOKS)["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        program, *arguments = shlex.split(hook["entry"])
        assert hook["language"] == "system"
        assert program == "git" or Path(program).name in brought | {"python"}
        for argument in arguments:
            assert not argument.startswith("tests") or (ROOT / argument).exists()


def test_the_release_has_one_number() -> None:
    source = PROJECT["tool"]["hatch"]["version"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    found = re.search(source["pattern"], (ROOT / source["path"]).read_text(encoding="utf-8"))
    assert found is not None
    number = found["version"]
    assert number == TANDEM
    metainfo = (ROOT / "resources/desktop/app.tandem.Tandem.metainfo.xml").read_text(encoding="utf-8")
    assert re.findall(r'<release version="([^"]+)"', metainfo)[0] == number
    assert (
        re.findall(r"^## \[?(\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0]
        == number
    )
