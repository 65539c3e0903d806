"""The figures that an experiment can name, with their titles and captions; figures/charts.py draws them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """title is the help of its command, caption its text in a report; is_of_any: any report can have it."""

    title: str
    caption: str
    is_of_any: bool = False


FIGURES = {
    "layer-similarity": Figure(
        "Figure 1: what each layer changes.",
        "What each layer changes: L2 distance and angle between its input and its output, over the real tokens of the"
        " held-out set, without masks. The distance grows with the hidden size; the angle does not.",
    ),
    "learning-curves": Figure(
        "Held-out accuracy during training, of any report.",
        "Accuracy on held-out documents during training.",
        is_of_any=True,
    ),
    "extra-data": Figure(
        "Figure 2a: MLM accuracy with and without additional data.",
        "MLM accuracy on held-out documents with and without the added corpus.",
    ),
    "dropout": Figure(
        "Figure 2b: MLM accuracy with dropout kept and removed.",
        "MLM accuracy on held-out documents with dropout kept and removed.",
    ),
    "sharing-tradeoff": Figure(
        "Table 4 as a figure: score against parameters.",
        "Score against parameters, by sharing strategy and embedding size.",
    ),
    "embedding-size": Figure(
        "Table 3 as a figure: score against embedding size.",
        "Score against embedding size, by sharing strategy.",
    ),
    "scores-by-setting": Figure(
        "Scores on pairs against the one numeric setting that the rows of a report differ in.",
        "Scores of the rows against the setting that they differ in, each with a band of one standard deviation over"
        " seeds.",
        is_of_any=True,
    ),
    "speed": Figure(
        "Training throughput of the rows of any report, with the paper's speed-ups.",
        "Training throughput of each row: over rounds if the rows were measured side by side, or else over seeds, as it"
        " was measured during the runs; runs that shared the machine with others were slowed by them.",
        is_of_any=True,
    ),
}
