"""The figures that an experiment can name, with their titles and captions; figures/charts.py draws them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure in words.

    Attributes:
        title: the help of its command.
        caption: its text in a report.
        needs: what a report must have, for the user whose report does not.
        is_of_any: any report can have it.
        is_of_curves: its points are evaluations during training, and the scores of the table at the end.
    """

    title: str
    caption: str
    needs: str
    is_of_any: bool = False
    is_of_curves: bool = False


_CURVES = "evaluations of {} during training (`evaluation.num_curve_points` above 0)"
_BY_BOTH = "rows by `sharing` and `embedding_size`, with scores in MLM accuracy or the average of the tasks"


FIGURES = {
    "layer-similarity": Figure(
        "Figure 1: what each layer changes.",
        "What each layer changes: L2 distance and angle between its input and its output, over the real tokens of the"
        " held-out set, without masks. The distance grows with the hidden size; the angle does not.",
        "layers measured at the end of a run, as in studies that name this figure",
    ),
    "learning-curves": Figure(
        "Held-out accuracy during training, of any report.",
        "Accuracy on held-out documents during training.",
        _CURVES.format("a column in percent"),
        is_of_any=True,
        is_of_curves=True,
    ),
    "extra-data": Figure(
        "Figure 2a: MLM accuracy with and without additional data.",
        "MLM accuracy on held-out documents with and without the added corpus.",
        _CURVES.format("MLM accuracy"),
        is_of_curves=True,
    ),
    "dropout": Figure(
        "Figure 2b: MLM accuracy with dropout kept and removed.",
        "MLM accuracy on held-out documents with dropout kept and removed.",
        _CURVES.format("MLM accuracy"),
        is_of_curves=True,
    ),
    "sharing-tradeoff": Figure(
        "Table 4 as a figure: score against parameters.",
        "Score against parameters, by sharing strategy and embedding size.",
        _BY_BOTH,
    ),
    "embedding-size": Figure(
        "Table 3 as a figure: score against embedding size.",
        "Score against embedding size, by sharing strategy.",
        _BY_BOTH,
    ),
    "scores-by-setting": Figure(
        "Scores on pairs against a numeric setting that the rows of a report differ in.",
        "Scores of the rows against a setting that they differ in, each with a band of one standard deviation over"
        " seeds; dashed: each segment by itself; dotted: a constant answer.",
        "an axis of numbers with at least two rows, and at most one other axis",
        is_of_any=True,
    ),
    "speed": Figure(
        "Training throughput of the rows of any report, with the paper's speed-ups.",
        "Training throughput of each row over seeds, of runs that had the machine to themselves.",
        "a run that had the machine to itself (`--jobs 1`)",
        is_of_any=True,
    ),
}
