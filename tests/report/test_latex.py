from command import here
from toy_reports import toy_report

from albert_lab.report import latex
from albert_lab.studies import experiment

TEXT = """# Title

## Scores & such

| row `a_b` |   **MLM** % |
|:----------|------------:|
| [none]    | 23.5 ± 1.2  |
| 50 \\| 60  | — †         |
"""


def test_a_table_becomes_a_booktabs_table_with_its_heading_as_caption():
    assert latex.tables(TEXT).split("\n\n")[1].strip().splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Scores \& such}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"row \texttt{a\_b} & \textbf{MLM} \% \\",
        r"\midrule",
        r"{[}none] & 23.5 $\pm$ 1.2 \\",
        r"50 | 60 & --- \textsuperscript{\dag} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_all_tables_of_a_report_are_written_in_characters_that_any_latex_reads(tmp_path, empty_figures):
    folder = toy_report(tmp_path / "dropout", experiment.named("dropout"), full=True)
    done = here("report", str(folder), "--latex")
    assert done.returncode == 0
    text = (folder / "report.tex").read_text()
    assert text.isascii()
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") >= 5


def test_a_folder_of_reports_has_no_latex(tmp_path):
    toy_report(tmp_path / "smoke-sotu" / "dropout", experiment.named("dropout"))
    done = here("report", str(tmp_path), "--latex")
    assert done.returncode == 2
    assert "needs the folder of one report" in done.stderr
