import ast
import subprocess
import sys

import pytest

from albert_lab import machine, paths

# Lowest first. A room imports from itself and from lower layers.
LAYERS = [
    ["errors"],
    ["files", "machine", "messages"],
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
    banned = (
        {"click", "torch"}
        if module.parts[0] in ("data", "analysis", "figures", "report")
        else {"click"}
    )
    assert not banned & {name.split(".")[0] for name in imports(module)}


def importing(*rooms: str) -> str:
    names = [
        ".".join(["albert_lab", *module.with_suffix("").parts])
        for module in MODULES
        if module.parts[0] in rooms
    ]
    return f"import {', '.join(names)}"


def executing(*words: str) -> str:
    return (
        f"from albert_lab import cli; sys.argv = {['albert-lab', *words]}\ntry: "
        "cli.main()\nexcept SystemExit: pass"
    )


SLOW = {"pandas", "scipy", "transformers"} | (
    {"torch"} if not any(gpu.exists() for gpu in machine._DRIVERS) else set()
)
STEPS = """
import torch
from albert_lab.config.compose import load
from albert_lab.training.optimizer import build_optimizer
for name in ("lamb", "adamw", "muon"):
    model = torch.nn.Linear(2, 2)
    optimizer = build_optimizer(model, load(["scale=smoke", f"optimizer={name}"]).optimizer, 0.1)
    model(torch.ones(2)).sum().backward()
    optimizer.step(), optimizer.zero_grad(), optimizer.load_state_dict(optimizer.state_dict())"""


@pytest.mark.parametrize(
    ("script", "unloaded"),
    [
        (importing("data", "analysis", "figures", "report"), {"torch"}),
        (importing("cli"), {"torch", "pandas"}),
        (executing("-h"), {"torch", "pandas", "hydra", "scipy"}),
        (executing("sop-vs-nsp", "scale=smoke", "--dry-run"), SLOW),
        (STEPS, {"torch._dynamo"}),
    ],
    ids=["importing rooms", "importing commands", "help", "a dry run", "steps of an optimizer"],
)
def test_nothing_is_loaded_that_is_not_needed_and_takes_a_second(script, unloaded):
    end = f"\nsys.exit(', '.join({unloaded} & set(sys.modules)) or 0)"
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + script + end], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
