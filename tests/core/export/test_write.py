"""A job's files: each launcher starts the same members with them, and nobody else reads the secret."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, get_args

import kubernetes_validate
import pytest
import yaml
from msgspec import structs

from app.cli import command_line
from app.cli.run_flags import options_of
from core.exchange import membership
from core.export.job import Job, Launcher
from core.export.write import folder_of, write
from core.project.scan import scan_project
from core.vocabulary.errors import TandemError
from core.vocabulary.options import RunOptions

LAUNCHERS: tuple[Launcher, ...] = get_args(Launcher)
KUBERNETES = ("1.30", "1.34")
JOB = Job(
    script=PurePath("/home/anna/my digits/digits.py"),
    arguments=("--epochs", "8", "$HOME; 'quoted' \"twice\" {{ 7 }} {% x %}"),
    shares=(48, 16),
    seed=7,
    options=RunOptions(wire="bf16", away_s=90.0),
    token="0a1b2c",
)
SRUN = """\
#!/bin/sh
trap 'echo ends >> "$TOLD"; exit 130' TERM
for word in "$@"; do printf '%s\\0' "$word"; done > "$TOLD.words"
echo begins >> "$TOLD"
while [ -n "$STAYS" ]; do sleep 0.05; done
exit 3
"""


def command_of(launcher: Launcher, folder: Path) -> list[str]:
    """The command that starts a member, as that launcher reads it."""
    match launcher:
        case "slurm":
            (line,) = [
                line for line in (folder / "job.sbatch").read_text().splitlines() if line.startswith("srun ")
            ]
            words = shlex.split(line.removesuffix(" &"))
            return words[words.index("tandem") :]
        case "kubernetes":
            container: dict[str, Any] = pod(folder)["containers"][0]
            return list(container["command"])
        case "ray":
            tree = ast.parse((folder / "driver.py").read_text())
            (value,) = [
                node.value
                for node in tree.body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMMAND"
            ]
            return list(ast.literal_eval(value))


def documents(folder: Path) -> dict[str, Any]:
    """The Kubernetes documents, by kind."""
    found = [each for path in sorted(folder.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]
    return {each["kind"]: each for each in found}


def pod(folder: Path) -> dict[str, Any]:
    spec: dict[str, Any] = documents(folder)["Job"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_starts_the_same_members(launcher: Launcher, tmp_path: Path) -> None:
    folder = tmp_path / "a job"
    write(JOB, launcher, folder)
    program, *words = command_of(launcher, folder)
    told = command_line.read(words)
    assert program == "tandem" and told.runs.__name__ == "member"
    assert (told.seed, told.share) == (7, "48,16")
    heeded = options_of(told, RunOptions())
    accepts = launcher == "kubernetes"
    assert heeded == structs.replace(JOB.options, go_on_s=JOB.options.away_s, accept_differences=accepts)
    assert told.script_arguments == JOB.arguments
    place = "/tandem" if launcher == "kubernetes" else str(folder)
    assert (told.checkpoints, told.save) == (f"{place}/kept", f"{place}/trained")
    assert told.script == ("/tandem/project/digits.py" if launcher == "kubernetes" else str(JOB.script))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX'")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_secret_is_its_owners_and_lies_in_no_other_file(launcher: Launcher, tmp_path: Path) -> None:
    first, second = (write(JOB, launcher, tmp_path / name) for name in ("one", "two"))
    secrets = []
    for written in (first, second):
        (path,) = [path for path in written.files if path.name.startswith("secret")]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        text = path.read_text()
        secret = yaml.safe_load(text)["stringData"]["secret"] if path.suffix else text.strip()
        assert len(secret) == 64
        assert not [other for other in written.files if other != path and secret in other.read_text()]
        secrets.append(secret)
    assert secrets[0] != secrets[1], "each job has its own"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_folder_that_is_there_is_left_alone(launcher: Launcher, tmp_path: Path) -> None:
    written = write(JOB, launcher, tmp_path / "job")
    before = {path: path.read_bytes() for path in written.folder.iterdir()}
    with pytest.raises(TandemError) as failure:
        write(JOB, launcher, tmp_path / "job")
    assert failure.value.code == "exists" and "--out" in failure.value.fix
    assert {path: path.read_bytes() for path in written.folder.iterdir()} == before


def test_a_job_beside_its_script_does_not_travel_with_it(tmp_path: Path) -> None:
    script = tmp_path / "project" / "train.py"
    script.parent.mkdir()
    script.write_text("import keras\n")
    folder = folder_of(script, "slurm")
    write(replace(JOB, script=script), "slurm", folder)
    (folder / "kept").mkdir()
    (folder / "kept" / "weights.bin").write_bytes(b"0")
    assert folder.parent == script.parent
    assert [file.path for file in scan_project(script, home=tmp_path).manifest.files] == ["train.py"]


def test_an_error_of_the_disk_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TandemError) as failure:
        write(JOB, "ray", tmp_path / "file" / "job")
    assert failure.value.code == "storage-failed"


# --- Slurm ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
@pytest.mark.real
@pytest.mark.parametrize("stays", ["", "yes"])
def test_the_script_waits_for_its_members_when_it_is_told_to_end(stays: str, tmp_path: Path) -> None:
    folder, told = tmp_path / "a job", tmp_path / "told"
    write(JOB, "slurm", folder)
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    told.touch()
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TOLD": str(told), "STAYS": stays}
    job = subprocess.Popen(["sh", str(folder / "job.sbatch")], env=environ, stdin=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + 60
        while "begins" not in told.read_text():
            assert time.monotonic() < until_s
            assert stays == "" or job.poll() is None
            time.sleep(0.01)
        if stays:
            # As Slurm does it: every process started by the job.
            subprocess.run(["pkill", "-TERM", "-P", str(job.pid)], check=True, timeout=60)
            job.terminate()
        assert job.wait(60) == (130 if stays else 3), "srun's own status"
    finally:
        job.kill()
        job.wait()
    assert told.read_text().split() == (["begins", "ends"] if stays else ["begins"])
    words = (tmp_path / "told.words").read_text().split("\0")
    assert words[-4:-1] == list(JOB.arguments), "the shell changed nothing in them"


def test_slurm_gets_a_node_for_each_member_and_may_start_them_again(tmp_path: Path) -> None:
    write(replace(JOB, members=3, shares=()), "slurm", tmp_path / "50% of it")
    lines = (tmp_path / "50% of it" / "job.sbatch").read_text().splitlines()
    given = dict(
        line.removeprefix("#SBATCH --").partition("=")[::2] for line in lines if line.startswith("#SBATCH")
    )
    assert (given["nodes"], given["ntasks-per-node"]) == ("3", "1")
    assert "requeue" in given and given["signal"] == "TERM@120"
    assert given["job-name"] == "digits-0a1b2c"
    assert shlex.split(given["output"]) == [f"{tmp_path}/50%% of it/%j.txt"], "its own % is not Slurm's"


# --- Kubernetes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_files_match_the_schemas_of_kubernetes(version: str, tmp_path: Path) -> None:
    write(JOB, "kubernetes", tmp_path / "job")
    found = documents(tmp_path / "job")
    assert set(found) == {"Service", "Job", "Secret"}
    for each in found.values():
        kubernetes_validate.validate(each, version, strict=True)
    found["Job"]["spec"]["completionMod"] = "Indexed"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(found["Job"], version, strict=True)


def test_the_pods_of_the_job_find_each_other_by_the_services_names(tmp_path: Path) -> None:
    write(replace(JOB, members=3, shares=()), "kubernetes", tmp_path / "job")
    found, spec = documents(tmp_path / "job"), pod(tmp_path / "job")
    service, job, secret = found["Service"], found["Job"], found["Secret"]
    name = job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"job-name": name}, "a label that Kubernetes gives to a Job's pods"
    assert spec["subdomain"] == service["metadata"]["name"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 3

    (container,) = spec["containers"]
    environ = {each["name"]: each.get("value", "") for each in container["env"]}
    runs = [membership.read({**environ, "JOB_COMPLETION_INDEX": str(index)}) for index in range(3)]
    assert [run.rank for run in runs] == [0, 1, 2]
    # Kubernetes: $(jobname)-$(index) is a pod's host name, and the subdomain follows.
    assert runs[0].addresses == tuple(f"{name}-{index}.{name}:20000" for index in range(3))
    assert {run.run for run in runs} == {name}
    (kept,) = [each["valueFrom"]["secretKeyRef"] for each in container["env"] if "valueFrom" in each]
    assert kept == {"name": secret["metadata"]["name"], "key": next(iter(secret["stringData"]))}


def test_kubernetes_puts_no_variable_into_the_arguments_and_trains_nothing_twice(tmp_path: Path) -> None:
    write(replace(JOB, arguments=("$(TANDEM_SECRET)", "$HOME")), "kubernetes", tmp_path / "job")
    (container,) = pod(tmp_path / "job")["containers"]
    assert container["command"][-2:] == ["$$(TANDEM_SECRET)", "$HOME"]
    assert "--accept-differences" in container["command"], "a told difference is no failure to be repeated"


# --- Ray --------------------------------------------------------------------------------------------------


def test_the_driver_for_ray_is_python_whatever_the_script_is_called(tmp_path: Path) -> None:
    odd = PurePath("/home/anna/a'''b\"\"\"c\\/d.py")
    write(replace(JOB, script=odd), "ray", tmp_path / "job")
    assert command_of("ray", tmp_path / "job")[2] == str(odd)
    compile((tmp_path / "job" / "driver.py").read_text(), "driver.py", "exec")
