import json
import re
from dataclasses import replace

import numpy as np
import pytest
from toy_ladder import NOT_SHARED, SHARED, growing, toy_ladder

from albert_lab.analysis.ladder import Measure, analyse
from albert_lab.analysis.ladder_paper import PaperEffect
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.figures import ladder as figures
from albert_lab.report import ladder as report
from albert_lab.report.publish import publish
from albert_lab.studies import ladder_results
from albert_lab.studies.experiment import named


def lines(results):
    return list(report.sentences(analyse(results)))


def noisy(rung, row, seed):
    return growing(rung, row, seed) + (0.4 if row["sharing"] == "not-shared" else 0.0) * (-1) ** (rung + seed)


def test_a_trend_is_told_as_the_lead_of_the_better_row_with_its_slope_and_prediction():
    (sentence, _) = lines(toy_ladder(growing))
    assert re.match(r"MLM: the lead of not-shared over all-shared grows by 0.100 nats per token \[0.1", sentence)
    assert "per tenfold compute. At the paper's compute the line predicts 0.9" in sentence
    assert "4.4 powers of ten above the top rung" in sentence


def test_a_lead_grows_by_a_positive_number_whichever_row_has_it():
    def reversed_rows(rung, row, seed):
        other = "not-shared" if row["sharing"] == "all-shared" else "all-shared"
        return growing(rung, {"sharing": other}, seed)

    (there, _), (back, _) = lines(toy_ladder(growing)), lines(toy_ladder(reversed_rows))
    assert back == there.replace("not-shared over all-shared", "all-shared over not-shared")


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        ((-0.3, -0.14, 0.0, 0.14, 0.3), "changes sign, and rises by 0.148 nats per token [0.1"),
        ((0.3, 0.14, 0.0, -0.14, -0.3), "changes sign, and falls by 0.148 nats per token [0.1"),
        ((-0.05, 0.3, 0.35, 0.6, 0.9), "rises by 0.220 nats per token [0.1"),
        ((0.05, -0.3, -0.35, -0.6, -0.9), "falls by 0.220 nats per token [0.1"),
    ],
)
def test_a_difference_whose_line_crosses_zero_is_nobodys_lead(effects, words):
    (sentence, _) = lines(toy_ladder(differing_by(effects)))
    assert sentence.startswith(f"MLM: the difference not-shared − all-shared {words}")


def differing_by(effects):
    """A loss with these effects at the rungs, and a little noise."""

    def loss(rung, row, seed):
        is_shared = row["sharing"] == "all-shared"
        return 5.0 - (0.0 if is_shared else effects[rung]) + 0.001 * (seed - 1) * (1 if is_shared else -1)

    return loss


def without(results, rung, *seeds):
    """The results without the runs of some seeds at a rung."""
    lost = {point.run for point in results.file.points if point.rung == rung and point.seed in seeds}
    return replace(results, runs={name: run for name, run in results.runs.items() if name not in lost})


def test_a_rung_below_its_first_look_is_left_out_of_the_trend_and_named():
    whole, early = toy_ladder(growing, rungs=4), without(toy_ladder(growing), "h96", 1, 2)
    assert lines(early) == lines(whole)
    text = report.render(analyse(early), [])
    assert "Left out of trends and figures: h96, where rows have fewer than 3 seeds, those of the first look." in text
    assert "(n = 1) |" in text.partition("## Effects at each rung")[2]
    assert "Left out" not in report.render(analyse(toy_ladder(growing)), [])


def test_a_prediction_that_covers_both_signs_is_called_uninformative():
    (sentence, _) = lines(toy_ladder(noisy))
    assert "no trend is shown" in sentence
    assert "At the paper's compute: uninformative, " in sentence


def test_a_line_that_crosses_zero_above_the_top_rung_is_not_taken_at_its_word():
    def shrinking(rung, row, seed):
        return growing(4 - rung, row, seed)

    (sentence, _) = lines(toy_ladder(shrinking))
    assert "the lead of not-shared over all-shared shrinks by 0.1" in sentence
    assert "the opposite of the top rung's sign" in sentence


def test_a_prediction_beyond_what_two_scores_can_differ_by_is_told_as_such():
    analysis = analyse(toy_ladder(growing))
    (line, *_) = analysis.trends
    (sentence, _) = report.sentences(replace(analysis, trends=(replace(line, room=0.5), analysis.trends[1])))
    assert "more than two scores above chance can differ: it cannot go on so far" in sentence


def test_before_the_first_look_a_trend_is_told_without_a_verdict():
    (sentence, _) = lines(toy_ladder(growing, seeds=2))
    assert "no trend is shown, before the first look, in the lead of not-shared over all-shared (0." in sentence


def test_the_papers_own_effects_stand_in_a_table_under_the_names_of_its_rows():
    def table_of(results):
        section = report.render(analyse(results), []).partition("## The paper's own effects\n")[2].partition("## ")[0]
        return {row[1].strip(): row[-2].strip() for line in section.splitlines() if len(row := line.split("|")) > 2}

    assert table_of(toy_ladder(growing))["not-shared − all-shared"] == "+2.5"
    rows = [SHARED | {"embedding_size": label} for label in ("H", "H/2", "H/4")]
    own = toy_ladder(growing, rows=rows, experiment=named("embedding-size"))
    assert {name: cell for name, cell in table_of(own).items() if name.startswith("paper")} == {
        "paper E=64 − E=768": "-0.8",
        "paper E=128 − E=768": "+0.3",
        "paper E=256 − E=768": "-0.2",
    }
    assert "The paper has no rows for H/2 − H and H/4 − H" in report.render(analyse(own), [])
    figure = figures.draw_trends(analyse(own))
    assert figure is not None
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == ["E=64", "E=128", "E=256"]
    assert figure.axes[2].get_xlabel() == "against E=768"


def test_the_decision_accuracy_of_all_measures_is_told_in_words():
    analysis = analyse(toy_ladder(differing_by((-0.05, 0.3, 0.35, 0.6, 0.9)), sops={"not-shared": 72.0}))
    sentence = report.as_text(analysis).splitlines()[-1]
    assert sentence.endswith("from all lower rungs for 2 of 2 contrasts, and from the lowest rung alone for 1 of 2.")
    assert sentence in report.render(analysis, [])
    assert "| all " in report.render(analysis, [])


def test_contrasts_whose_top_rung_is_not_predicted_are_named_with_the_reason():
    partly = SHARED | {"sharing": "shared-ffn"}
    results = toy_ladder(growing, rows=(SHARED, partly, NOT_SHARED))
    kept = {name: run for name, run in results.runs.items() if "ffn" not in name or name[:3] in {"h24", "h36", "h48"}}
    text = report.render(analyse(replace(results, runs=kept)), [])
    assert "Not predicted: shared-ffn − all-shared. It has fewer than four rungs" in text
    assert "Beside longer trends they have no band in the figure either" in text
    assert "Not predicted" not in report.render(analyse(results), [])
    short = report.render(analyse(toy_ladder(growing, rungs=3)), [])
    assert "Not predicted: not-shared − all-shared. It has" in short
    assert "no band" not in short


def test_one_seed_has_no_interval():
    text = report.render(analyse(toy_ladder(growing, seeds=1)), [])
    effects = text.partition("## Effects at each rung")[2].partition("## Scores")[0]
    assert "(n = 1)" in effects
    assert "[" not in effects


def test_two_rungs_have_no_trend():
    (sentence, _) = lines(toy_ladder(growing, rungs=2))
    assert sentence == "MLM: no trend of the difference not-shared − all-shared, which needs three rungs and has 2."


def test_a_report_is_rebuilt_from_its_records_to_the_same_text(tmp_path, empty_figures):
    results = toy_ladder(growing)
    text = report.write(tmp_path, analyse(results)).read_text()
    assert report.rebuild(tmp_path).read_text() == text
    assert ladder_results.read(tmp_path) == results
    assert text.startswith("# Cross-layer parameter sharing: a ladder\n\n- MLM: the lead of not-shared over all-shared")
    for heading in ("Figures", "Trends", "Predicted and measured at the top rung", "Effects at each rung", "Cost"):
        assert f"## {heading}\n" in text
    assert "15 of 15" not in text
    assert "6 of 6" in text
    assert (tmp_path / "report.html").is_file()


def test_the_scores_of_each_row_stand_beside_each_segment_by_itself(tmp_path, empty_figures):
    results = toy_ladder(growing, by=dict.fromkeys(("all-shared", "not-shared"), "linear probe"))
    runs = {name: replace(run, record=with_floor(run.record)) for name, run in results.runs.items()}
    text = report.write(tmp_path, analyse(replace(results, runs=runs))).read_text()
    section = text.partition("## Scores at each rung\n")[2].partition("## ")[0]
    rows = {row[1].strip(): row[2].strip() for line in section.splitlines() if len(row := line.split("|")) > 2}
    assert rows["all-shared †"] == rows["not-shared †"] == "70.0 ± 0.0"
    assert rows["each segment by itself"] == "66.0"
    assert "† By a linear probe" in section


def with_floor(record):
    score = record.scores["sop_accuracy"].model_copy(update={"segments_floor": 66.0})
    return record.model_copy(update={"scores": record.scores | {"sop_accuracy": score}})


def test_an_estimate_is_compared_with_runs_on_its_own_device_only():
    results = toy_ladder(growing)
    points = tuple(point.model_copy(update={"estimated_on": "cuda"}) for point in results.file.points)
    file = results.file.model_copy(update={"points": points})
    there, elsewhere = (report.render(analyse(results_), []) for results_ in (results, replace(results, file=file)))
    assert " 9 s |" in there
    assert " 9 s |" not in elsewhere


def test_missing_runs_are_named_with_their_reason(tmp_path, empty_figures):
    results = toy_ladder(growing)
    point = results.file.points[-1].model_copy(update={"run": "other", "reason": "not made yet"})
    file = results.file.model_copy(update={"points": (*results.file.points[:-1], point)})
    text = report.write(tmp_path, analyse(ladder_results.LadderResults(file, results.runs))).read_text()
    assert "- h96, embedding_size=H sharing=not-shared, seed 2: not made yet" in text


def test_the_analysis_as_json_has_each_contrast():
    result = json.loads(report.as_json(analyse(toy_ladder(growing))))
    assert result["contrasts"][0]["direction"] == "grows"
    assert result["contrasts"][0]["trend"]["slope"]["value"] == pytest.approx(0.1, abs=0.001)


def test_the_figure_of_trends_has_a_panel_for_the_rungs_the_prediction_and_the_paper():
    figure = figures.draw_trends(analyse(toy_ladder(growing)))
    assert figure is not None
    (rungs, there, paper), *_ = zip(*[iter(figure.axes)] * 3, strict=True)
    assert "MLM" in rungs.get_ylabel()
    assert "1.5e+20" in there.get_title()
    assert "Avg of the paper" in paper.get_title()
    (label,) = rungs.get_legend_handles_labels()[1]
    assert label == "not-shared − all-shared (n = 3 seeds)"


@pytest.mark.parametrize(
    ("label", "unit", "column"),
    [
        ("MLM", "nats per token", "Avg"),
        ("SOP by probe", "points", "SOP"),
        ("coherence", "points", None),
    ],
)
def test_the_paper_is_shown_in_the_same_score_and_only_a_likelihood_falls_back_to_the_average(label, unit, column):
    effects = [PaperEffect("sop − none", "sop", "none", {"SOP": 33.2, "Avg": 1.1})]
    assert figures.paper_column(effects, Measure(label, label, unit)) == column


def test_the_papers_compute_has_a_place_on_the_axis_behind_a_break():
    figure = figures.draw_trends(analyse(toy_ladder(growing)))
    assert figure is not None
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_xticklabels()][-1] == "paper: 1.5e+20"
    assert panel.get_xticks()[-1] < panel.get_xlim()[1]
    assert "//" in [text.get_text() for text in panel.texts]
    assert "4.4 powers of ten" in panel.get_xlabel()


def test_a_band_is_cut_off_where_it_would_hide_the_points():
    figure = figures.draw_trends(analyse(toy_ladder(differing_by((0.0, 0.3, 0.2)), rungs=3)))
    assert figure is not None
    panel = figure.axes[0]
    low, high = panel.get_ylim()
    assert high - low < 2 * 0.3
    (note,) = [text.get_text() for text in panel.texts if text.get_text() != "//"]
    assert re.fullmatch(r"bands from −\d\.\d+ to \d\.\d+", note)
    near = figures.draw_trends(analyse(toy_ladder(growing)))
    assert near is not None
    assert [text.get_text() for text in near.axes[0].texts] == ["//"]


def test_no_line_is_drawn_beyond_the_rungs():
    analysis = analyse(toy_ladder(growing))
    figure = figures.draw_trends(analysis)
    assert figure is not None
    x = [value for line in figure.axes[0].lines[:-1] for value in np.asarray(line.get_xdata())]
    assert max(x) == pytest.approx(10 ** analysis.trends[0].effects[-1].log_flops)


def test_the_figure_of_the_top_rung_needs_three_rungs_below_it():
    assert figures.draw_validations(analyse(toy_ladder(growing, rungs=3))) is None
    assert figures.draw_validations(analyse(toy_ladder(growing))) is not None


def test_damaged_results_are_refused_by_a_reader_and_replaced_by_the_command(tmp_path, empty_figures):
    report.write(tmp_path, analyse(toy_ladder(growing)))
    file = tmp_path / ladder_results.FILE
    file.write_text(file.read_text()[:-100])
    assert ladder_results.earlier(tmp_path) is None
    with pytest.raises(DamagedFileError, match=r"ladder.json"):
        report.rebuild(tmp_path)


def test_a_published_ladder_keeps_runs_that_a_later_one_lacks(tmp_path, empty_figures):
    whole, part = tmp_path / "whole" / "ladder", tmp_path / "part" / "ladder"
    report.write(whole, analyse(toy_ladder(growing)))
    report.write(part, analyse(toy_ladder(growing, rungs=4)))
    published = publish(whole, tmp_path / "public")
    assert published.read_text() == (whole / "report.md").read_text()
    with pytest.raises(ConfigError, match=r"has 6 runs and 0 fine-tunings that .* lacks; --replace"):
        publish(part, tmp_path / "public")
    publish(part, tmp_path / "public", replace=True)
    assert len(ladder_results.read(published.parent).runs) == 24
