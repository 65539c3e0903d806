"""Ablation studies of encoder pre-training: ALBERT's experiments at any scale.

`report(path)` has the numbers of a report as pandas tables, `load(folder)` a model and its tokenizer.
"""

TYPE_CHECKING = False  # not that of typing, whose import takes longer than to handle signals (albert_lab/cli)
if TYPE_CHECKING:  # they load torch and pandas, which most commands do not need
    from albert_lab.interop.loading import load
    from albert_lab.report import report_of as report

__all__ = ["__version__", "load", "report"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in ("load", "report"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The report is a package that can be called.
    return import_module("albert_lab.interop.loading").load if name == "load" else import_module("albert_lab.report")
