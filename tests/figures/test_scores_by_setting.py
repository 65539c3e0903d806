import pytest
from panels import drawn, heights, places
from toy_reports import toy_report

from albert_lab.figures import charts as figures
from albert_lab.figures.data import figure_data
from albert_lab.report import report
from albert_lab.studies import experiment


def own_study(folder, grid, **options):
    text = f"{{title: Own, source: own study, grid: {grid}, columns: [mlm_accuracy, sop_accuracy, nsp_accuracy]}}"
    (folder / "own.yaml").write_text(text)
    return figure_data(report.read(toy_report(folder / "report", experiment.read(folder / "own.yaml"), **options)))


def test_scores_by_setting_has_a_line_for_each_accuracy_of_pairs_over_the_values_in_order(tmp_path):
    data = own_study(tmp_path, "{dropout: [0.2, 0, 0.1]}", seeds=2)
    (panel,) = drawn(figures.scores_by_setting(data)).axes
    assert [str(line.get_label()).partition(" (")[0] for line in panel.lines] == ["SOP", "NSP", "a constant answer"]
    assert places(panel.lines[0]) == [0, 0.1, 0.2]
    spreads = {float(row.values["dropout"]): row.spread("sop_accuracy") for row in data.rows}
    by_value = {x: spread.mean for x, spread in spreads.items() if spread}
    assert heights(panel.lines[0]) == [by_value[x] for x in (0, 0.1, 0.2)]
    assert panel.get_xlabel() == "dropout"


def test_scores_by_setting_has_a_panel_for_each_label_of_another_axis(tmp_path):
    data = own_study(tmp_path, "{sharing: [all-shared, not-shared], dropout: [0, 0.1]}", seeds=2)
    panels = drawn(figures.scores_by_setting(data)).axes
    assert [panel.get_title() for panel in panels] == ["all-shared", "not-shared"]
    assert all(places(line) == [0, 0.1] for panel in panels for line in panel.lines if "seed" in str(line.get_label()))


def test_scores_by_setting_takes_the_label_of_a_value_that_stands_for_several_settings(tmp_path):
    axis = "{32: [max_sequence_length=32, batch_size=8], 64: [max_sequence_length=64, batch_size=4]}"
    grid = f"{{max_sequence_length: {axis}}}"
    (panel,) = drawn(figures.scores_by_setting(own_study(tmp_path, grid, seeds=1))).axes
    assert places(panel.lines[0]) == [32, 64]


def test_scores_by_setting_draws_the_floor_of_single_segments_where_it_is_known(tmp_path):
    data = own_study(tmp_path, "{dropout: [0, 0.1]}", seeds=1)
    heights_of_floor = iter([61.0, 62.0])
    for row in data.rows:
        (run,) = row.runs
        score = run.scores["sop_accuracy"]
        run.scores["sop_accuracy"] = score.model_copy(update={"segments_floor": next(heights_of_floor)})
    (panel,) = drawn(figures.scores_by_setting(data)).axes
    assert [61.0, 62.0] in [heights(line) for line in panel.lines]
    assert [text for text in panel.get_legend_handles_labels()[1] if "by itself" in text] == [
        "each segment by itself, in the colour of its score"
    ]


@pytest.mark.parametrize(
    "grid", ["{inter_sentence: [nsp, sop]}", "{dropout: [0, 0.1], sharing: [all-shared], embedding_size: [8, 16]}"]
)
def test_scores_by_setting_needs_a_numeric_setting_and_one_other_at_most(tmp_path, grid):
    assert figures.scores_by_setting(own_study(tmp_path, grid, seeds=1)) is None
