import pytest
from command import here
from toy import toy_overrides
from toy_reports import toy_report

from albert_lab.studies import experiment


def test_layers_are_drawn_from_the_newest_report_or_from_what_is_named(
    corpus, own_home, runs_here, empty_figures
):
    drawn = own_home / "figures"
    files = [str(drawn / f"layer-similarity.{kind}") for kind in ("png", "svg")]
    done = here("layer-similarity", *toy_overrides(corpus, "budget.value=2"), "--tasks", "none")
    assert done.returncode == 0, done.stderr
    folder = own_home / "reports" / "smoke-files" / "layer-similarity"
    assert "](layer-similarity.png)" in (folder / "report.md").read_text()
    of_report = here("plot", "layer-similarity")
    assert f"layer-similarity of the report {folder}" in of_report.stderr
    assert "`albert-lab layer-similarity` trains" in of_report.stderr
    assert of_report.stdout.split() == files
    runs = sorted(path.name for path in (own_home / "runs").iterdir())
    run = str(own_home / "runs" / runs[1])
    both = here("plot", "layer-similarity", runs[0], run, str(folder))
    assert both.returncode == 0, both.stderr
    assert "measuring" not in both.stderr


def test_a_report_without_layers_has_no_figure_of_layers(tmp_path):
    report = toy_report(tmp_path / "sop-vs-nsp", experiment.named("sop-vs-nsp"), seeds=1)
    refused = here("plot", "layer-similarity", str(report))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "layer-similarity" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plot", "sharing-tradeoff"], 4, "`albert-lab sharing`"),
        (["plot", "speed"], 2, "learning-curves"),
        (["plot", "learning-curves", "absent"], 2, "absent"),
        (["plot", "layer-similarity", "nobody"], 2, "nobody"),
        (["plot", "layer-similarity"], 4, "`albert-lab layer-similarity`"),
        (["plot", "layer-similarity", "scale=smoke"], 2, "scale=smoke"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_an_error_and_nothing_is_written(
    arguments, code, said, own_home
):
    done = here(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(own_home.iterdir())
