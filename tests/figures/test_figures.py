from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from toy_reports import toy_report

from albert_lab.analysis import analysis
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.sentences import reports, sentences
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import charts, claims, drawing, figures
from albert_lab.report import scoreboard
from albert_lab.report.wording import extremes
from albert_lab.studies import experiment
from albert_lab.studies.experiment import Experiment
from albert_lab.training.layers import Layer


def analysed(tmp_path, name, seeds=2, **more) -> Analysis:
    return analysis.read(toy_report(tmp_path / name, experiment.named(name), seeds, **more))


def words(figure: Figure) -> str:
    """All text of a figure."""
    found = [
        figure.get_suptitle(),
        *(text.get_text() for legend in figure.legends for text in legend.get_texts()),
    ]
    for panel in figure.axes:
        found += [
            panel.get_title(),
            panel.get_xlabel(),
            panel.get_ylabel(),
            *(text.get_text() for text in panel.texts),
        ]
    return "\n".join(found)


DRAWN = [
    ("learning-curves", "sop-vs-nsp"),
    ("learning-curves", "dropout"),
    ("scores-by-setting", "embedding-size"),
    ("sharing-tradeoff", "sharing"),
    ("layer-similarity", "layer-similarity"),
]


@pytest.mark.parametrize(("figure", "name"), DRAWN)
def test_a_figure_says_its_message_and_every_row_stands_or_is_said_to_be_missing(
    figure, name, tmp_path
):
    result = analysed(tmp_path, name, full=True, seeds=1)
    drawn: Any = figures.FIGURES[figure](result, "What is answered.")
    assert drawn.get_suptitle() == "What is answered."
    lost = result.rows[-1]
    assert f"missing: {lost}, the loss is nan at step 3" in words(drawn)
    points = [len(bars[0].get_xdata()) for bars in drawn.axes[0].containers]
    if figure == "scores-by-setting":  # a line a label of the other axis, a point a row
        assert points == [4, 3]
    elif figure == "sharing-tradeoff":
        assert points == [2, 2, 2, 1]
    else:
        assert all(row in words(drawn) for row in result.rows if row != lost)


def test_every_figure_that_an_experiment_may_name_can_be_drawn_and_no_other():
    for file in experiment.files():
        assert {*experiment.named(file.stem).figures} <= {*figures.FIGURES}
    content = {"name": "a", "title": "A", "source": "none", "grid": {}, "figures": ["absent"]}
    with pytest.raises(ValueError, match="figures"):
        Experiment.model_validate(content)
    for name in figures.FIGURES:
        Experiment.model_validate(content | {"figures": [name]})


def test_the_message_names_the_best_row_only_if_the_difference_is_clear(tmp_path):
    result = analysed(tmp_path, "sop-vs-nsp", 3)
    assert "highest for sop (25.0 %)" in extremes(result, "mlm_accuracy")
    numbers = result.frame.numbers.copy()
    of_mlm = numbers["metric"] == "mlm_accuracy"
    numbers.loc[of_mlm, "value"] += [0, 40, -40, 30, -45, 10, -20, 20, 3]
    noisy = replace(result, frame=replace(result.frame, numbers=numbers))
    assert "within the noise" in extremes(noisy, "mlm_accuracy")
    first, *others = result.study.runs
    first = first.model_copy(
        update={"record": first.record.model_copy(update={"evaluation_set": "other"})}
    )
    mixed = replace(result, study=result.study.model_copy(update={"runs": [first, *others]}))
    assert "different held-out sets" in extremes(mixed, "mlm_accuracy")


def test_a_line_has_a_point_for_each_evaluation_and_a_band_over_seeds(tmp_path):
    drawn: Any = charts.learning_curves(analysed(tmp_path, "sop-vs-nsp", 3), "")
    panel = drawn.axes[-1]
    lines = [line for line in panel.lines if len(line.get_xdata()) == 4]
    assert len(lines) == len(panel.collections) == 3


def test_the_papers_curves_stand_beside_ours_with_the_looks_of_their_rows(tmp_path):
    drawn: Any = charts.learning_curves(analysed(tmp_path, "dropout"), "")
    *ours, theirs = drawn.axes
    colour = {line.get_label(): line.get_color() for line in ours[0].lines}
    assert {line.get_label(): line.get_color() for line in theirs.lines}.items() <= colour.items()
    assert "read off" in theirs.get_title()


def test_a_logarithmic_axis_has_a_tick_at_each_setting_but_none_of_a_floor(tmp_path):
    drawn: Any = charts.scores_by_setting(analysed(tmp_path, "embedding-size"), "")
    assert drawn.axes[-1].get_xscale() == "log"
    assert drawn.axes[-1].get_xticks().tolist() == [64, 128, 256, 768]


def test_the_picture_of_claims_has_all_and_their_verdicts(tmp_path):
    toy_report(tmp_path / "smoke-sotu" / "sop-vs-nsp", experiment.named("sop-vs-nsp"), 3)
    rows = scoreboard.picture(sentences(reports(tmp_path)))
    lines = sentences({})
    assert [row.claim for row in rows] == [line.claim.short for line in lines]
    drawn: Any = claims.claims(rows, "How many hold.")
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert {row.claim for row in rows} <= {*texts}
    words = [mark.word for row in rows for mark in row.marks.values()]
    assert {"not run", "cannot tell", "NO"} <= {*words}
    assert sum(text.startswith("not run") for text in texts) == words.count("not run")
    with pytest.raises(MissingDataError):
        scoreboard.draw(tmp_path / "empty", tmp_path)


def test_layers_of_two_models_are_drawn_with_their_table(tmp_path, empty_figures):
    numbers = {"l2_distance": 3.0, "cosine_similarity": 0.9, "degrees": 20.0}
    layers = [Layer(corpus="sotu", layer=layer, token="mean", n=100, **numbers) for layer in (1, 2)]
    other = [layer.model_copy(update={"degrees": 40.0}) for layer in layers]
    table, *drawn = figures.compare_layers([("a", layers), ("b", other)], tmp_path)
    assert len(pd.read_csv(table)) == 4
    assert [file.suffix for file in drawn] == [".png", ".svg"]
    with pytest.raises(ConfigError, match="rename"):
        figures.compare_layers([("a", layers), ("a", other)], tmp_path)


def test_text_with_signs_of_markup_is_drawn_as_it_is_written(tmp_path):
    signs = {
        "from $5_$ to $6^$": "from $5_$ to $6^$",
        "_first": "_first",
        "a\x1b[31m\nb": "a\\u001b[31m b",
        "\\frac{1}": "\\frac{1}",
    }

    drawn = list[Figure]()

    def draw() -> Figure:
        figure, (panel,) = drawing.sheet(1)
        drawn.append(figure)
        for place, label in enumerate(signs):
            drawing.draw_line(
                panel,
                pd.DataFrame({"x": [1, 2], "mean": [1, 2], "sd": [np.nan, np.nan]}),
                label,
                (place, place),
            )
        panel.set(ylabel="$A_$\x1b $B^$")
        return drawing.finish(figure, "$C_$ and $D^$", [panel])

    _, svg = drawing.write(draw, tmp_path, "a")
    (figure,) = drawn
    assert [text.get_text().strip() for text in figure.legends[0].get_texts()] == [*signs.values()]
    assert figure.get_suptitle() == "$C_$ and $D^$"
    ElementTree.parse(svg)
