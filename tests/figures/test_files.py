import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from panels import drawn, heights, places
from records import toy_layer
from toy_reports import toy_report

from albert_lab import paths
from albert_lab.analysis.analysis import analyse
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import charts as figures
from albert_lab.figures import drawing
from albert_lab.figures import files as plots
from albert_lab.figures.data import figure_data
from albert_lab.report import report
from albert_lab.score import CHANCE
from albert_lab.studies import experiment, frames, study

ARMS = """
title: "Dropout"
source: "a test"
grid: {dropout: {With dropout: 0.1, Without dropout: 0}}
columns: [mlm_accuracy]
figures: [dropout]
paper_figure:
  figure: "Figure 2b"
  x: "optimizer steps (thousands)"
  curves:
    - {panel: mlm_accuracy, row: With dropout, points: [[1175, 70.8]]}
    - {panel: mlm_accuracy, row: Without dropout, points: [[1175, 70.8], [1500, 72.0]]}
"""


def study_of(name, folder, **options):
    return figure_data(report.read(toy_report(folder / "report", experiment.named(name), **options)))


def arms_of(folder, **options):
    (folder / "arms.yaml").write_text(ARMS)
    return figure_data(report.read(toy_report(folder / "report", experiment.read(folder / "arms.yaml"), **options)))


def line_of(panel, label):
    (result,) = [line for line in panel.lines if str(line.get_label()).startswith(label)]
    return result


def test_a_report_shows_its_figures(tmp_path):
    folder = toy_report(tmp_path / "one", experiment.named("layer-similarity"), seeds=1)
    text = report.rebuild(folder).read_text()
    for name in ("layer-similarity", "learning-curves"):
        assert f"![{name}]({name}.png)" in text
        assert (folder / f"{name}.svg").read_text().startswith("<?xml")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_without_data_is_named_and_not_drawn(tmp_path):
    folder = toy_report(tmp_path / "one", experiment.named("layer-similarity"), seeds=1)
    result = study.read(folder)
    study.write(folder, replace(result, runs=[replace(run, layers=()) for run in result.runs]))
    text = report.rebuild(folder).read_text()
    assert "*layer-similarity.* Not drawn: it needs layers measured at the end of a run" in text
    assert not (folder / "layer-similarity.svg").exists()


def test_the_users_matplotlib_settings_have_no_effect(tmp_path, monkeypatch):
    import matplotlib

    folder = toy_report(tmp_path / "one", experiment.named("sop-vs-nsp"), seeds=1)
    file, _ = plots.draw(folder, "speed")
    before = file.read_bytes()
    monkeypatch.setitem(matplotlib.rcParams, "lines.markersize", 9)
    plots.draw(folder, "speed")
    assert file.read_bytes() == before


def test_labels_are_not_cut_off_if_the_layout_changes_the_ticks(tmp_path):
    def draw() -> Figure:
        figure, (panels,) = drawing.sheet(1, 3)
        for panel in panels:
            panel.plot([0, 1], [10.2, 24.3], label="a row")
            panel.set(ylabel="held-out MLM accuracy (%)", xlabel="parameters (millions)", title="ours")
        drawing.legends_under(figure, panels)
        drawing.marker_legend(figure, ["all-shared"])
        return figure

    png, _ = drawing.write(draw, tmp_path, "toy")
    assert imread(png)[:, :3, :3].min() == 1  # the left edge is white


def test_a_learning_curve_is_the_mean_over_seeds_with_a_band_of_one_standard_deviation(tmp_path):
    result = study_of("sop-vs-nsp", tmp_path, seeds=2)
    panel = drawn(figures.learning_curves(result)).axes[0]
    # Seeds of the first row end at 20 and 21 %, so the mean is 20.5 and the deviation 1 / sqrt(2).
    line = line_of(panel, "none (n = 2 seeds)")
    assert places(line) == [100, 200, 300, 400]
    assert heights(line) == pytest.approx([20.5 * share for share in (0.25, 0.5, 0.75, 1)])
    band = panel.collections[0].get_datalim(panel.transData)
    assert (band.y0, band.y1) == pytest.approx((0.25 * (20.5 - 0.5**0.5), 20.5 + 0.5**0.5))
    assert panel.get_ylabel() == "held-out MLM accuracy (%)"
    assert panel.get_xlabel() == "optimizer steps"


@pytest.mark.parametrize("budget", ["sop-vs-nsp", "same-wall-clock"])
@pytest.mark.parametrize("kept", [4, 3])
def test_the_last_point_of_a_curve_is_the_score_of_the_table_with_its_spread(tmp_path, budget, kept):
    result = study.read(toy_report(tmp_path / "report", experiment.named(budget), seeds=3))
    # One run was not evaluated at the end of its training, or all were.
    runs = [replace(run, curve=run.curve[:kept] if place == 0 else run.curve) for place, run in enumerate(result.runs)]
    study.write(tmp_path / "report", replace(result, runs=runs))
    analysis = report.read(tmp_path / "report")
    panels = drawn(figures.learning_curves(figure_data(analysis))).axes
    frames.write(tmp_path, analysis.study)
    table = pd.read_csv(tmp_path / "curves.csv")
    for panel, column in zip(panels, [key for key in analysis.experiment.columns if "_accuracy" in key], strict=True):
        lines = [line for line in panel.lines if "seeds" in str(line.get_label())]
        for line, row, band in zip(lines, analysis.rows, panel.collections or [None] * len(lines), strict=True):
            spread = row.spread(column)
            assert spread is not None
            assert spread.sd is not None
            assert heights(line)[-1] == pytest.approx(spread.mean)
            ends = table[table["run"].isin([run.name for run in row.runs]) & (table["share"] == 1)]
            assert list(ends["seed"]) == [0, 1, 2]
            assert np.mean(list(ends[column])) == pytest.approx(spread.mean)
            assert set(ends[f"{column}_n"]) == {1000}
            if band is not None:
                corners = np.asarray(band.get_paths()[0].vertices)
                (low, *_, high) = sorted(float(y) for x, y in corners if x == places(line)[-1])
                assert (low, high) == pytest.approx((spread.mean - spread.sd, spread.mean + spread.sd))


def test_a_single_seed_has_no_band_and_says_so(tmp_path):
    panel = drawn(figures.learning_curves(study_of("sop-vs-nsp", tmp_path, seeds=1))).axes[0]
    assert not panel.collections
    assert line_of(panel, "sop (n = 1 seed)")


def test_two_axes_use_colour_and_line_style_and_many_lines_have_no_bands(tmp_path):
    result = study_of("sharing", tmp_path, seeds=2)
    panel = drawn(figures.learning_curves(result)).axes[0]
    looks = [(line.get_color(), str(line.get_marker())) for line in panel.lines]
    assert len({colour for colour, _ in looks[:4]}) == 4  # sharing strategies, at one E
    assert [colour for colour, _ in looks[:4]] == [colour for colour, _ in looks[4:8]]
    assert [marker for _, marker in looks[:8]] == ["o"] * 4 + ["s"] * 4
    assert not panel.collections


def test_a_report_states_the_number_of_answers_of_its_curves(tmp_path):
    folder = toy_report(tmp_path / "report", experiment.named("sop-vs-nsp"), seeds=2)
    report.rebuild(folder)
    text = (folder / report.REPORT).read_text()
    # Half of Wilson's interval of a half: z / sqrt(n + z²) / 2.
    assert "NSP ± 16.4 (n = 32; in the table 1,000)" in text
    assert "Points before the end are from 150 or 32 answers each; the last one is the table's score." in text


def test_with_a_budget_in_seconds_curves_are_drawn_over_seconds(tmp_path):
    result = study_of("same-wall-clock", tmp_path)
    panel = drawn(figures.learning_curves(result)).axes[0]
    assert panel.get_xlabel() == "training time (seconds)"
    assert all(places(line) == [2, 4, 6, 8] for line in panel.lines if "seed" in str(line.get_label()))


def test_a_pair_accuracy_is_drawn_with_its_floors(tmp_path):
    panels = drawn(figures.learning_curves(study_of("sop-vs-nsp", tmp_path))).axes
    assert heights(line_of(panels[2], "a constant answer")) == [50, 50]
    assert heights(line_of(panels[2], "bags of tokens")) == [58, 58]
    assert heights(line_of(panels[0], "a constant answer")) == [5, 5]


def test_a_floor_beyond_the_lines_extends_the_panel_or_is_written_at_its_edge():
    def panel_with(height: float):
        _, ((panel,),) = drawing.sheet(1, 1)
        panel.plot([1, 2], [20, 30])
        drawing.draw_floors(panel, {CHANCE: height})
        return panel

    low, high = panel_with(10).get_ylim()
    assert low < 10 < 30 < high
    panel = panel_with(9)  # the lines would have less than half of the panel
    assert [text.get_text() for text in panel.texts] == ["a constant answer: 9.0 % ↓"]
    assert panel.get_ylim()[0] > 19
    assert [text.get_text() for text in panel_with(50).texts] == ["a constant answer: 50.0 % ↑"]


def test_the_floor_of_our_scores_is_in_their_panels_and_not_in_the_papers(tmp_path):
    for draw, name in ((figures.sharing_tradeoff, "sharing"), (figures.embedding_size, "embedding-size")):
        result = study_of(name, tmp_path / name, seeds=1, full=True)
        mlm, average, paper = drawn(draw(result)).axes
        of_tasks = [column.score.floor for column in result.runs[0].columns]
        for panel, height in ((mlm, 5.0), (average, np.mean(of_tasks))):
            drawn_floors = [line.get_label() for line in panel.lines] + [text.get_text() for text in panel.texts]
            assert {"a constant answer", f"a constant answer: {height:.1f} % ↓"} & {*drawn_floors}
        assert not paper.texts
        assert "a constant answer" not in paper.get_legend_handles_labels()[1]


def test_curves_leave_out_the_difference_of_two_accuracies(tmp_path):
    drawn_columns = {
        panel.get_ylabel() for panel in drawn(figures.learning_curves(study_of("sop-vs-nsp", tmp_path))).axes
    }
    assert not [label for label in drawn_columns if "coherence" in label]
    assert [label for label in drawn_columns if "SOP" in label]


def test_layer_similarity_has_the_layers_of_the_table_and_panels_of_the_paper(tmp_path):
    panels = drawn(figures.layer_similarity(study_of("layer-similarity", tmp_path, seeds=2))).axes
    assert [panel.get_title() for panel in panels[:3]] == [
        "[CLS]",
        "mean over tokens",
        "paper, Figure 1 (read off the plot)",
    ]
    # Of the second row, seeds 0 and 1: 30 / layer + 5 + seed.
    line = line_of(panels[3], "BERT-large (n = 2 seeds)")
    assert heights(line) == pytest.approx([30 / layer + 5.5 for layer in (1, 2, 3, 4)])
    assert panels[3].get_ylabel() == "angle (degrees)"
    assert heights(line_of(panels[5], "ALBERT-large")) == [0, 22, 8.5, 10, 8.7]


def test_score_against_embedding_size_has_ours_and_the_papers_at_their_sizes(tmp_path):
    ours, paper = drawn(figures.embedding_size(study_of("embedding-size", tmp_path, seeds=1))).axes
    assert places(line_of(ours, "all-shared")) == [4, 8, 16, 48]
    assert places(line_of(paper, "all-shared")) == [64, 128, 256, 768]
    assert heights(line_of(paper, "all-shared")) == [79.0, 80.1, 79.6, 79.8]


def test_the_sharing_tradeoff_has_a_marker_for_each_strategy_at_its_parameters(tmp_path):
    figure = drawn(figures.sharing_tradeoff(study_of("sharing", tmp_path, seeds=1)))
    ours, paper = figure.axes
    points = {(places(line)[0], heights(line)[0]): line.get_marker() for line in paper.lines if len(places(line)) == 1}
    assert points[12, 80.1] == points[31, 79.8] == "o"
    assert points[89, 81.6] == points[108, 82.3] == "D"
    assert places(line_of(ours, "E = 48 (paper: 768)")) == pytest.approx([0.031, 0.062, 0.093, 0.124])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "all-shared",
        "shared-attention",
        "shared-ffn",
        "not-shared",
    ]


def test_rows_beyond_the_paper_have_separate_markers(tmp_path):
    result = study.read(toy_report(tmp_path / "report", experiment.named("sharing"), seeds=1))
    beyond = {"shared-attention": "2-groups", "shared-ffn": "3-groups"}
    points = [
        point.model_copy(
            update={
                "values": point.values | {"sharing": "groups"},
                "labels": point.labels | {"sharing": beyond[point.labels["sharing"]]},
            }
        )
        if point.labels["sharing"] in beyond
        else point
        for point in result.points
    ]
    figure = drawn(figures.sharing_tradeoff(figure_data(analyse(replace(result, points=points)))))
    kinds = [text.get_text() for text in figure.legends[0].get_texts()]
    assert kinds == ["all-shared", "2-groups", "3-groups", "not-shared"]
    markers = {str(line.get_marker()) for line in figure.axes[0].lines if len(places(line)) == 1}
    assert len(markers) == 4


def test_arms_are_drawn_next_to_the_papers_and_separate_at_the_end_of_the_trunk(tmp_path):
    ours, paper = drawn(figures.arms(arms_of(tmp_path, trunk_points=2))).axes
    assert set(places(line_of(ours, "one curve up to here"))) == {200}
    assert paper.get_title() == "paper, Figure 2b (read off the plot)"
    assert places(line_of(paper, "Without dropout")) == [1175, 1500]


@pytest.mark.parametrize("trunk_points", [0, 4])
def test_rows_that_never_coincide_or_never_separate_have_no_such_point(tmp_path, trunk_points):
    ours, _ = drawn(figures.arms(arms_of(tmp_path, trunk_points=trunk_points))).axes
    assert "one curve up to here" not in [line.get_label() for line in ours.lines]


def test_speed_is_drawn_for_any_report_next_to_the_papers_speedup(tmp_path):
    result = study_of("sop-vs-nsp", tmp_path)
    (panel,) = drawn(figures.speed(result)).axes
    assert [text.get_text() for text in panel.get_yticklabels()] == ["none (n = 2)", "nsp (n = 2)", "sop (n = 2)"]
    assert [container[0].get_xdata()[0] for container in panel.containers] == pytest.approx([3025, 3525, 4025])
    assert result.experiment.paper
    for cells, speedup in zip(result.experiment.paper.rows, ("4.7x", "1.0", "0.3x"), strict=True):
        cells["speedup"] = speedup
    result.experiment.paper.columns["speedup"] = "Speedup"
    _, ratios = drawn(figures.speed(result)).axes
    values = [float(container[0].get_xdata()[0]) for container in ratios.containers]
    assert values == pytest.approx([3025 / 3525, 1, 4025 / 3525, 4.7, 1.0, 0.3])


def test_rows_of_a_table_with_an_axis_of_one_value_are_named_by_the_other(tmp_path):
    folder = toy_report(tmp_path / "smoke-sotu" / "depth", experiment.named("depth"), seeds=1, full=True)
    data = figure_data(report.read(folder))
    assert [data.name(row) for row in data.rows][:2] == ["layers = 1", "layers = 1 (paper: 3)"]


def test_rows_differ_without_colour_and_colours_differ_for_colour_blind_readers():
    looks = [drawing.style(index) for index in range(70)]
    assert len({(look["linestyle"], look["marker"]) for look in looks}) == 70
    assert len({look["color"] for look in looks}) == 10
    # Viénot, Brettel and Mollon (1999): what a deuteranope sees, in linear light.
    seen = [vienot_deuteranope(look["color"]) for look in looks[:3]]
    assert min(sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) for one, two in pairs(seen)) > 0.01


def pairs(items):
    return [(one, two) for place, one in enumerate(items) for two in items[place + 1 :]]


def vienot_deuteranope(colour):
    red, green, blue = (channel**2.2 for channel in to_rgb(colour))
    yellow = 0.29275 * red + 0.70725 * green
    return yellow, -0.02234 * red + 0.02234 * green + blue


def test_a_folder_that_is_no_report_is_refused_and_leaves_no_folder(tmp_path):
    for out in (None, tmp_path / "figures"):
        with pytest.raises(ConfigError, match="study.json"):
            plots.draw(tmp_path / "missing", "learning-curves", out)
    assert not list(tmp_path.iterdir())


def test_the_newest_report_with_a_figure_is_found_or_its_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_REPORTS", str(tmp_path))
    with pytest.raises(MissingDataError, match="`albert-lab sharing`"):
        plots.newest("sharing-tradeoff")
    toy_report(tmp_path / "smoke-sotu" / "sharing", experiment.named("sharing"), seeds=1)
    toy_report(tmp_path / "smoke-sotu" / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1)
    assert plots.newest("sharing-tradeoff") == paths.reports() / "smoke-sotu" / "sharing"
    assert plots.newest("learning-curves").name == "sop-vs-nsp"


def test_encoders_of_any_source_are_compared_in_one_figure_with_their_table(tmp_path):
    layers = [toy_layer(layer, token) for token in ("cls", "mean") for layer in (1, 2, 3)]
    files = plots.compare_layers([("mine", layers), ("theirs", layers), ("mine", layers)], tmp_path / "out")
    assert [file.name for file in files] == ["layers.csv", "layer-similarity.png", "layer-similarity.svg"]
    table = pd.read_csv(files[0])
    assert list(table["run"]) == ["mine"] * 6 + ["theirs"] * 6
    assert list(table["layer"]) == [1, 2, 3] * 4
    assert re.search("<!-- theirs: n = 1,200 tokens of sotu -->", files[2].read_text())


def test_different_encoders_of_one_name_are_refused(tmp_path):
    mine, other = ([toy_layer(1, "mean", degrees=degrees)] for degrees in (8.0, 9.0))
    with pytest.raises(ConfigError, match="two sources have the name mine"):
        plots.compare_layers([("mine", mine), ("mine", other)], tmp_path)
