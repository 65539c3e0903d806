"""Default settings for the files of tasks, and the modules of the kinds of task."""

from functools import cache
from importlib.util import find_spec
from typing import Any

from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.registry import own

DEFAULTS = paths.CONF / "task_defaults.yaml"
# The scale whose settings are complete; other scales list only the differences.
FULL_SCALE = "paper"
EVERY_KIND = "every_kind"


def kinds() -> list[str]:
    """The kinds of task that have defaults, and those of own code."""
    return [*(kind for kind in _defaults() if kind != EVERY_KIND), *own("task_kind")]


def kind_module(kind: str) -> str:
    """The module of a kind of task."""
    return f"albert_lab.tasks.{kind}"


def is_kind(kind: str) -> bool:
    """Whether the kind has a module."""
    return kind in own("task_kind") or (kind.isidentifier() and find_spec(kind_module(kind)) is not None)


def like(kind: str) -> str:
    """The kind whose formats and defaults a kind has: itself, unless it is own code."""
    registered = own("task_kind").get(kind)
    return registered.like if registered else kind


def filled(content: dict[str, Any]) -> dict[str, Any]:
    """A task's content completed by defaults: the task's value, else the kind's, else that of all kinds.

    The default title is the name. Default metrics depend on the format; the main metric is the first, for SQuAD both.
    The settings of a scale are the task's, else the kind's, else those of the full scale.
    """
    default = _defaults().get(like(str(content.get("kind"))), {})
    task = {"title": content["name"]} | _defaults()[EVERY_KIND] | content
    form = _format(content.get("format", {}), default.get("format", {}))
    if isinstance(form, dict):
        task = {"format": form, "metrics": _metrics(form)} | task | {"format": form}
        metrics = task["metrics"]
        task.setdefault("main", metrics[: len(metrics) if form.get("name") == "squad" else 1])
    return _with_settings(task, default.get("settings", {}))


def _format(own: Any, default: dict[str, Any]) -> Any:
    if not isinstance(own, dict) or own.get("name", default.get("name")) != default.get("name"):
        return own
    form = default | own
    return {"header": not form["columns"]} | form if "columns" in form else form


def _metrics(form: dict[str, Any]) -> list[str]:
    match form.get("name"):
        case "glue" if form.get("labels", ()) is None:
            return ["pearson", "spearman"]
        case "squad":
            return ["f1", "exact"] if form.get("unanswerable") else ["f1", "exact_match"]
        case _:
            return ["accuracy"]


def _with_settings(content: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    own = content.get("settings", {})
    if not isinstance(own, dict) or not all(isinstance(settings, dict) for settings in own.values()):
        return content
    full = default.get(FULL_SCALE, {}) | own.get(FULL_SCALE, {})
    settings = {}
    for scale in [*default, *(scale for scale in own if scale not in default)]:
        of_scale = own.get(scale, {})
        settings[scale] = full | default.get(scale, {}) | of_scale
        if "learning_rate" in of_scale and "rate_hidden_size" not in of_scale:  # then the rate is not scaled
            settings[scale]["rate_hidden_size"] = None
    return content | {"settings": settings}


@cache
def _defaults() -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(DEFAULTS))  # pyright: ignore[reportReturnType]
