import itertools
import os
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest

import albert_lab
from albert_lab import paths
from albert_lab.runs import worker

CHECKOUT = paths.PACKAGE.parent


def run(*command, **options):
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the source distribution, so that a file missing in either is missing
    here.
    """
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def run_installed(wheel, tmp_path_factory):
    """A function that runs Python in an empty folder, with the installed wheel first on the
    path.
    """
    target, elsewhere = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("elsewhere")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    environment.pop("ALBERT_LAB_HOME", None)
    return target, lambda *command: run(*command, cwd=elsewhere, env=environment)


def test_the_wheel_contains_only_the_package_its_configuration_and_its_experiments(wheel):
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [file for file in paths.PACKAGE.rglob("*.*") if "__pycache__" not in file.parts]
    package = {f"albert_lab/{file.relative_to(paths.PACKAGE)}" for file in files}
    conf = {
        f"albert_lab/conf/{file.relative_to(paths.CONF)}" for file in paths.CONF.rglob("*.yaml")
    }
    experiments = {
        f"albert_lab/experiments/{file.name}" for file in paths.EXPERIMENTS.glob("*.yaml")
    }
    assert carried == package | conf | experiments | {"albert_lab/COMMIT"}


def test_an_installed_wheel_knows_the_commit_that_it_was_built_of(run_installed):
    _, run_python = run_installed
    printed = run_python(
        "-c",
        "from albert_lab.runs import worker; from albert_lab import "
        "paths;print(worker.commit_of(paths.PACKAGE.parent))",
    )
    assert printed.strip() == worker.commit_of(CHECKOUT)


def test_the_wheel_contains_the_licence_and_the_command(wheel):
    files = zipfile.ZipFile(wheel)
    information = f"albert_lab-{albert_lab.__version__}.dist-info"
    assert b"Apache License" in files.read(f"{information}/licenses/LICENSE")
    assert b"albert-lab = albert_lab.cli:main" in files.read(f"{information}/entry_points.txt")


def test_an_installed_wheel_composes_its_configuration_and_lists_its_experiments_in_any_folder(
    run_installed,
):
    target, run_python = run_installed
    printed = run_python(
        "-c",
        "import sys; from albert_lab import cli, paths; from albert_lab.config.compose import "
        "load;print(load([]).scale.name, paths.CONF, paths.EXPERIMENTS, flush=True); sys.argv = "
        "['albert-lab', '--help'];cli.main()",
    )
    head = printed.split()[:3]
    assert head == [
        "laptop",
        str(target / "albert_lab/conf"),
        str(target / "albert_lab/experiments"),
    ]
    assert all(file.stem in printed for file in paths.EXPERIMENTS.glob("*.yaml"))


def test_every_required_package_is_pinned():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    required = set(re.findall(r"^[\w-]+", "\n".join(requirements), re.MULTILINE))
    pins = (CHECKOUT / "constraints.txt").read_text().lower()
    pinned = set(re.findall(r"^([\w-]+)==", pins, re.MULTILINE))
    assert required - {"albert-lab"} <= pinned
