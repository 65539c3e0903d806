import re
from pathlib import Path

import pytest
from test_report import changed, report_of, toy_points, toy_runs, written

from albert_lab import paths
from albert_lab.analysis.decisions import Decision
from albert_lab.config.schema import RunConfig
from albert_lab.report import collection, overview, report
from albert_lab.studies import paper

pytestmark = pytest.mark.usefixtures("empty_figures")


def put(root: Path, place: str, name: str = "sop-vs-nsp", **changes) -> Path:
    """A toy report at a place under a root."""
    written(root / place, [changed(point, **changes) for point in toy_points()], name)
    return root / place / name


def page_of(root: Path, place: str = "smoke-sotu") -> str:
    overview.write(root)
    return (root / place / overview.PAGE).read_text()


def claim_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("    - ")]


def test_the_page_has_one_short_line_for_each_claim_that_was_run(tmp_path):
    put(tmp_path, "smoke-sotu")
    text = overview.write(tmp_path).read_text()
    (result,) = collection.read(tmp_path)
    run = [
        verdict
        for entry in result.entries
        for verdict in entry.analysis.verdicts
        if verdict.decision != Decision.NOT_RUN
    ]
    lines = claim_lines(text)
    assert len(lines) == len(run) > 0
    assert not any(verdict.claim.quote in text for verdict in run)
    assert all(f"**{verdict.decision}**" in line for verdict, line in zip(run, lines, strict=True))
    assert max(map(len, lines)) <= 120
    assert "- **Table 5**: " in text


def test_a_claim_that_reports_judge_differently_says_so_on_its_line(tmp_path):
    put(tmp_path, "smoke-sotu")
    written(tmp_path / "smoke-files", [changed(point, corpus="files") for point in toy_points(seeds=range(6))])
    text = overview.write(tmp_path).read_text()
    (line,) = [line for line in claim_lines(text) if "`sop_accuracy` sop above" in line]
    assert ": **supported** ([smoke-files](smoke-files/sop-vs-nsp/report.md)), 75.0 [" in line
    assert "; **undecided** ([smoke-sotu](smoke-sotu/sop-vs-nsp/report.md)), 71.0 [" in line
    assert line.endswith(", 2 or 6 seeds.")


def test_a_table_with_own_code_says_so_everywhere_and_counts_in_no_total(tmp_path, monkeypatch):
    folder = put(tmp_path, "smoke-sotu")
    before = collection.read(tmp_path)[0].counted
    monkeypatch.setattr(RunConfig, "other_parts", ["position_encoding=rope"])
    title = report.rebuild(folder).read_text().splitlines()[0]
    assert title.endswith("(smoke, sotu, with position_encoding=rope)")
    text = overview.write(tmp_path).read_text()
    assert "([smoke-sotu with position_encoding=rope](smoke-sotu/sop-vs-nsp/report.md))" in text
    assert "| [sop-vs-nsp with position_encoding=rope](sop-vs-nsp/report.md) " in page_of(tmp_path)
    (result,) = collection.read(tmp_path)
    assert collection.outcomes(before)["not run"] < 35
    assert collection.outcomes(result.counted)["not run"] == 35


SUPPORTED, NOT_SUPPORTED, UNDECIDED = Decision.SUPPORTED, Decision.NOT_SUPPORTED, Decision.UNDECIDED


@pytest.mark.parametrize(
    ("decisions", "outcome"),
    [
        ([SUPPORTED, SUPPORTED], "supported"),
        ([SUPPORTED, NOT_SUPPORTED], "tests differ"),
        ([SUPPORTED, NOT_SUPPORTED, UNDECIDED], "tests differ"),
        ([SUPPORTED, UNDECIDED], "undecided"),
        ([SUPPORTED, Decision.NOT_LEARNT, Decision.NOT_RUN], "supported"),
        ([Decision.NOT_LEARNT, Decision.NOT_RUN], "not learnt"),
        ([Decision.NOT_RUN], "not run"),
    ],
)
def test_a_sentence_is_decided_if_all_its_tests_that_say_anything_agree(decisions, outcome):
    assert collection.outcome(decisions) == outcome


def test_the_page_of_a_scale_names_what_is_missing(tmp_path):
    put(tmp_path, "smoke-sotu")
    before, missing = page_of(tmp_path).split("## What is missing")
    others = [experiment.name for experiment in paper.experiments() if experiment.name != "sop-vs-nsp"]
    assert all(f"`{name}`" in missing for name in others)
    assert not any(f"`{name}`" in before for name in others)
    (result,) = collection.read(tmp_path)
    assert all(f"| {name} " in overview.contents(result) for name in ("sop-vs-nsp", *others))


def test_verdicts_effects_and_counts_are_those_of_the_report(tmp_path):
    put(tmp_path, "smoke-sotu")
    (result,) = collection.read(tmp_path)
    (entry,) = (shown for shown in result.entries if shown.folder)
    assert [str(verdict.decision) for verdict in entry.analysis.verdicts] == [
        verdict["verdict"] for verdict in entry.as_dict()["verdicts"]
    ]
    quotes = {(claim.quote, asked.source) for asked in paper.experiments() for claim in asked.claims}
    assert sum(collection.outcomes(result.entries).values()) == len(quotes)
    assert result.decisions == {Decision.UNDECIDED, Decision.NOT_RUN}
    text = overview.write(tmp_path).read_text()
    # The NSP row on SOP: 51 and 53 %, two seeds.
    assert "- `sop_accuracy` nsp within 45 to 55 %: **undecided**, 52.0 [47.9, 56.1] %.\n" in text
    assert "## Claims of the paper (Lan et al. 2020, arXiv 1909.11942; 2 seeds unless a line says otherwise)\n" in text


def test_links_lead_to_files_from_both_pages(tmp_path):
    put(tmp_path, "smoke-sotu")
    put(tmp_path, "smoke-sotu-before-1900", "sop-vs-nsp", corpus="sotu-before-1900")
    overview.write(tmp_path)
    for file in (tmp_path / "README.md", tmp_path / "smoke-sotu" / "README.md"):
        links = re.findall(r"\]\(([^)]+)\)", file.read_text())
        assert any(link.endswith("report.md") for link in links)
        assert not [link for link in links if not (file.parent / link).is_file()]


def test_each_scale_and_corpus_is_a_section(tmp_path):
    put(tmp_path, "smoke-sotu")
    put(tmp_path, "laptop-files", scale="laptop", corpus="files")
    sections = collection.read(tmp_path)
    assert {(section.scale, section.corpus) for section in sections} == {("smoke", "sotu"), ("laptop", "files")}
    assert all(sum(entry.folder is not None for entry in section.entries) == 1 for section in sections)


def test_own_studies_are_on_the_pages_but_in_no_count_of_the_papers_claims(tmp_path):
    folder = put(tmp_path, "smoke-files", corpus="files").rename(tmp_path / "smoke-files" / "mine")
    put(tmp_path, "smoke-sotu").rename(tmp_path / "smoke-sotu" / "sweep-dropout")
    file = tmp_path / "smoke-sotu" / "sweep-dropout" / "experiment.yaml"
    file.write_text(re.sub("^claims:$.*?^figures:$", "figures:", file.read_text(), flags=re.MULTILINE | re.DOTALL))
    assert {len(section.own) for section in collection.read(tmp_path)} == {1}
    assert not any(Decision.UNDECIDED in section.decisions for section in collection.read(tmp_path))
    text = overview.write(tmp_path).read_text()
    assert "- [smoke-sotu/sweep-dropout](smoke-sotu/sweep-dropout/report.md): " in text
    assert ", 2 seeds.\n" in text
    assert "[smoke-files/mine](smoke-files/mine/report.md)" in text
    assert "experiments of the paper" not in text
    page = (folder.parent / overview.PAGE).read_text()
    assert "| [mine](mine/report.md) " in page
    assert "`albert-lab NAME` makes one" not in page


def extra_data(root: Path, place: str, corpus: str) -> None:
    arms = [{"data": "No additional data"}] * 3 + [{"data": "With additional data"}] * 3
    points = [
        changed(point, values=arm, labels=arm, corpus=corpus) for point, arm in zip(toy_points(), arms, strict=True)
    ]
    report_of(root / place / "extra-data", points, toy_runs(toy_points()), "extra-data")


def test_a_table_with_a_different_corpus_is_in_the_section_of_the_default(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    (result,) = collection.read(tmp_path)
    assert (result.scale, result.corpus) == ("smoke", "sotu")


def test_two_reports_of_a_table_on_different_text_are_both_on_the_page(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    extra_data(tmp_path, "smoke-sotu", "sotu")
    assert {section.corpus for section in collection.read(tmp_path)} == {"sotu", "sotu-before-1900"}


def test_tables_on_the_corpus_of_one_of_them_are_one_section(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    put(tmp_path, "smoke-sotu-before-1900", corpus="sotu-before-1900")
    (result,) = collection.read(tmp_path)
    assert result.corpus == "sotu-before-1900"
    assert sum(entry.folder is not None for entry in result.entries) == 2


def test_the_cost_of_a_collection_counts_its_runs_once(tmp_path):
    put(tmp_path, "smoke-sotu")
    (result,) = collection.read(tmp_path)
    assert result.cost.runs == 6
    assert result.cost.tokens == 36_000
    assert result.cost.finetunings == 12
    assert result.as_dict()["cost"]["total_seconds"] == 21.0


def test_missing_items_are_named_with_their_reasons(tmp_path):
    points = toy_points(missing=("nsp-1",))
    written(tmp_path / "smoke-sotu", points)
    text = page_of(tmp_path).split("## What is missing")[1]
    assert "- `nsp-1`: the loss is nan at step 3" in text
    assert "- `sop-0, fine-tuning`: race, seed 0: the loss is nan at step 2" in text
    assert "- `sop-vs-nsp, columns`: no scores of SQuAD2.0, MNLI, RACE" in text


def test_tasks_that_were_not_run_are_not_counted_as_missing_runs(tmp_path):
    def cells() -> dict[str, str]:
        lines = [line.split("|") for line in page_of(tmp_path).splitlines() if line.startswith("|")]
        header, line = lines[0], next(line for line in lines if "[sop-vs-nsp]" in line[1])
        return {name.strip(): cell.strip() for name, cell in zip(header, line, strict=True)}

    written(tmp_path / "smoke-sotu", toy_points())
    assert "## Missing" in (tmp_path / "smoke-sotu" / "sop-vs-nsp" / "report.md").read_text()
    assert (cells()["missing runs or fine-tunings"], cells()["tasks without scores"]) == ("1", "3 of 5")
    written(tmp_path / "smoke-sotu", toy_points(missing=("nsp-1",)))
    assert (cells()["missing runs or fine-tunings"], cells()["tasks without scores"]) == ("2", "3 of 5")


@pytest.mark.parametrize("folder", ["nothing", "."])
def test_a_folder_without_reports_below_it_is_no_collection(folder, tmp_path):
    assert not collection.holds_reports(tmp_path / folder)
    assert not collection.holds_reports(paths.PACKAGE)


def test_a_study_with_the_name_of_a_table_and_a_source_of_its_own_is_listed(tmp_path):
    folder = put(tmp_path, "smoke-sotu")
    file = folder / "experiment.yaml"
    file.write_text(re.sub("^source: .*$", "source: my own question", file.read_text(), flags=re.MULTILINE))
    assert "| my own question" in page_of(tmp_path)
