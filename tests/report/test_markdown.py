from planted import analysed
from records import toy_run

from albert_lab.report.markdown import escape_tags, fold, scores_table
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row


def test_sections_are_folded_by_heading_and_others_are_unchanged():
    text = "# Title\n\nOpening.\n\n## Scores\n\n| a |\n\n## Cost\n\n| b |\n\n## Notes\n\n1. c\n"
    details = "<details>\n<summary>Cost</summary>\n\n| b |\n\n</details>"
    assert fold(text, ["Cost", "Absent"]) == text.replace("## Cost\n\n| b |", details)


def test_tags_are_escaped_outside_of_code_and_other_signs_are_unchanged():
    assert (
        escape_tags("# <script>a</script> `<b>` 1 < 2 <= 3 -> <!-- c")
        == r"# \<script>a\</script> `<b>` 1 < 2 <= 3 -> \<!-- c"
    )
    assert fold("# <details>\n", []) == "# \\<details>\n"


def test_the_seeds_of_a_row_are_those_that_have_its_scores():
    columns = [Column("sst2", "SST-2", None), Column("race", "RACE", None)]
    content = {"name": "toy", "title": "Toy", "source": "none", "grid": {"sharing": ["all-shared"]}}
    experiment = Experiment.model_validate(content)

    def seeds(*scored: str) -> str:
        runs = [toy_run("run", seed, dict.fromkeys(tasks.split(), 60.0 + seed)) for seed, tasks in enumerate(scored)]
        row = Row({"sharing": "all-shared"}, {"sharing": "all-shared"}, runs, {})
        return scores_table(analysed(experiment, [row]), columns).splitlines()[-1].split("|")[2].strip()

    assert seeds("sst2 race", "sst2 race") == "2"
    assert seeds("sst2 race", "", "") == "1"
    assert seeds("sst2 race", "sst2", "sst2") == "1 to 3"
    assert seeds("", "") == "0"
