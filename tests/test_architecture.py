import ast
import subprocess
import sys

import pytest

from albert_lab import machine, paths

# Lowest first. A room imports from itself and from lower layers.
LAYERS = [
    ["errors", "machine", "messages"],
    ["files"],
    ["paths", "score", "signals", "storage"],
    ["own_code"],
    ["config"],
    ["data", "model"],
    ["measures"],
    ["training"],
    ["tasks"],
    ["runs"],
    ["studies"],
    ["analysis"],
    ["figures"],
    ["report", "interop"],
    ["terminal"],
    ["cli"],
]
LAYER = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
MODULES = sorted(file.relative_to(paths.PACKAGE) for file in paths.PACKAGE.rglob("*.py"))


def imports(module):
    for node in ast.walk(ast.parse((paths.PACKAGE / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative path"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_imports_only_from_its_own_room_and_lower_layers(module):
    room = module.parts[0].removesuffix(".py")
    own = [name.split(".")[1] for name in imports(module) if name.startswith("albert_lab.")]
    # The package's __init__ is above all rooms: it is the Python API.
    height = LAYER.get(room, len(LAYERS))
    upward = [other for other in own if other in LAYER and other != room and LAYER[other] >= height]
    assert room in LAYER or room == "__init__", f"{room} has no place among the layers"
    assert not upward, f"{module} imports {upward}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_module_imports_click_and_text_and_tables_need_no_torch(module):
    banned = {"click", "torch"} if module.parts[0] in ("data", "analysis", "figures", "report") else {"click"}
    assert not banned & {name.split(".")[0] for name in imports(module)}


@pytest.mark.parametrize(
    ("rooms", "unloaded"), [(("data", "analysis", "figures", "report"), {"torch"}), (("cli",), {"torch", "pandas"})]
)
def test_importing_rooms_does_not_load_packages_that_they_must_not_need(rooms, unloaded):
    names = [".".join(["albert_lab", *module.with_suffix("").parts]) for module in MODULES if module.parts[0] in rooms]
    loads = f"import sys, {', '.join(names)}; sys.exit(', '.join({unloaded} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_dry_run_loads_no_package_that_takes_a_second():
    may_have_gpu = any(device.exists() for device in machine._DRIVERS)
    slow = {"pandas", "scipy", "transformers"} | (set() if may_have_gpu else {"torch"})
    script = (
        "import sys; from albert_lab import cli\n"
        "sys.argv = ['albert-lab', 'sop-vs-nsp', 'scale=smoke', '--dry-run']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        f"sys.exit(', '.join({slow} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_module_has_a_catch_all_name():
    nameless = ("util", "helper", "common", "manager", "handler", "misc")
    assert not [module for module in MODULES if any(word in module.name for word in nameless)]
