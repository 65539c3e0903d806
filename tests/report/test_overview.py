import re
from pathlib import Path

import pytest
from test_report import changed, report_of, toy_points, toy_runs, written

from albert_lab import paths
from albert_lab.report import collection, overview, report
from albert_lab.report.claims import Decision
from albert_lab.report.markdown import PROBE_NOTE
from albert_lab.studies import paper


def put(root: Path, place: str, name: str = "sop-vs-nsp", **changes) -> Path:
    """A toy report at a place under a root."""
    written(root / place, [changed(point, **changes) for point in toy_points()], name)
    return root / place / name


def test_the_page_has_every_claim_that_was_run_and_names_every_table(tmp_path):
    put(tmp_path, "smoke-sotu")
    text = overview.write(tmp_path).read_text()
    known = paper.experiments()
    (found,) = collection.read(tmp_path)
    run = [each for entry in found.entries for each in entry.verdicts if each.decision != Decision.NOT_RUN]
    assert all(f"“{verdict.claim.quote}”" in text for verdict in run)
    rows = [line for line in text.splitlines() if line.startswith(("| **supp", "| **not", "| **und"))]
    assert len(rows) == len(run) > 0
    claims = sum(len(each.claims) for each in known)
    assert f"{claims - len(run)} claims were not run." in text
    assert f"1 of {len(known)} experiments has a report" in text
    contents, missing = text.split("### Claims")[0], text.split("### What is missing")[1]
    others = [each.name for each in known if each.name != "sop-vs-nsp"]
    assert all(f"| {name} " in contents and f"`{name}`" in missing for name in others)
    assert not any(f"`{name}`" in text.split("### What is missing")[0] for name in others)


def test_the_page_has_alarms_below_their_scores(tmp_path):
    put(tmp_path, "smoke-sotu")
    table, after = overview.write(tmp_path).read_text().split("Alarms:\n\n")
    assert table.rstrip().endswith(PROBE_NOTE)
    assert after.startswith("- inter_sentence=sop: SOP at chance in 1 of 2 runs.\n")


def test_verdicts_effects_and_counts_are_those_of_the_report(tmp_path):
    folder = put(tmp_path, "smoke-sotu")
    (found,) = collection.read(tmp_path)
    (entry,) = (each for each in found.entries if each.folder)
    assert [str(each.decision) for each in entry.verdicts] == [item["verdict"] for item in entry.as_dict()["verdicts"]]
    assert {str(each.decision) for each in entry.verdicts} == report.decisions(folder)
    claims = sum(len(each.claims) for each in paper.experiments())
    assert found.decisions.total() == claims
    assert found.decisions[Decision.NOT_RUN] >= claims - len(entry.verdicts)
    text = overview.write(tmp_path).read_text()
    line = next(line for line in text.splitlines() if "brings no discriminative power" in line)
    # The NSP row on SOP: 51 and 53 %, two seeds.
    assert re.search(r"\*\*undecided\*\* .* 52\.0 \[47\.9, 56\.1\] %; 2 of at least 3 seeds +\| +52\.0 +\| +2 \|", line)


def test_links_lead_to_files_from_both_pages(tmp_path):
    put(tmp_path, "smoke-sotu")
    put(tmp_path, "smoke-sotu-before-1900", "sop-vs-nsp", corpus="sotu-before-1900")
    overview.write(tmp_path)
    for file, folder in (
        (tmp_path / "README.md", "this folder"),
        (tmp_path / "smoke-sotu" / "README.md", "the folder above"),
    ):
        assert f"`albert-lab report` with {folder}" in file.read_text()
        links = re.findall(r"\]\(([^)]+)\)", file.read_text())
        assert any(link.endswith(".svg") for link in links)
        assert any(link.endswith("report.md") for link in links)
        assert not [link for link in links if not (file.parent / link).is_file()]


def test_each_scale_and_corpus_is_a_section_without_users_studies(tmp_path):
    put(tmp_path, "smoke-sotu")
    put(tmp_path, "laptop-files", scale="laptop", corpus="files")
    put(tmp_path, "smoke-sotu", "sop-vs-nsp").rename(tmp_path / "smoke-sotu" / "mine")
    put(tmp_path, "smoke-sotu")
    sections = collection.read(tmp_path)
    assert {(found.scale, found.corpus) for found in sections} == {("smoke", "sotu"), ("laptop", "files")}
    assert all(sum(entry.folder is not None for entry in section.entries) == 1 for section in sections)


def extra_data(root: Path, place: str, corpus: str) -> None:
    arms = [{"data": "No additional data"}] * 3 + [{"data": "With additional data"}] * 3
    points = [
        changed(point, values=arm, labels=arm, corpus=corpus) for point, arm in zip(toy_points(), arms, strict=True)
    ]
    report_of(root / place / "extra-data", points, toy_runs(toy_points()), "extra-data")


def test_a_table_with_a_different_corpus_is_in_the_section_of_the_default(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    (found,) = collection.read(tmp_path)
    assert (found.scale, found.corpus) == ("smoke", "sotu")


def test_two_reports_of_a_table_on_different_text_are_both_on_the_page(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    extra_data(tmp_path, "smoke-sotu", "sotu")
    assert {found.corpus for found in collection.read(tmp_path)} == {"sotu", "sotu-before-1900"}


def test_tables_on_the_corpus_of_one_of_them_are_one_section(tmp_path):
    extra_data(tmp_path, "smoke-sotu-before-1900", "sotu-before-1900")
    put(tmp_path, "smoke-sotu-before-1900", corpus="sotu-before-1900")
    (found,) = collection.read(tmp_path)
    assert found.corpus == "sotu-before-1900"
    assert sum(entry.folder is not None for entry in found.entries) == 2


def test_the_page_is_rebuilt_to_the_byte_and_runs_are_counted_once(tmp_path):
    put(tmp_path, "smoke-sotu")
    first = overview.write(tmp_path).read_text()
    (tmp_path / overview.PAGE).unlink()
    assert overview.write(tmp_path).read_text() == first
    (found,) = collection.read(tmp_path)
    assert found.cost.runs == 6
    assert found.cost.tokens == 36_000
    assert found.cost.finetunings == 12
    assert found.as_dict()["cost"]["total_seconds"] == 21.0


def test_missing_items_are_named_with_their_reasons(tmp_path):
    points = toy_points(missing=("nsp-1",))
    written(tmp_path / "smoke-sotu", points)
    text = overview.write(tmp_path).read_text().split("### What is missing")[1]
    assert "- `nsp-1`: the loss is nan at step 3" in text
    assert "- `sop-0, fine-tuning`: race, seed 0: the loss is nan at step 2" in text
    assert "- `sop-vs-nsp, columns`: no scores of SQuAD2.0, MNLI, RACE" in text


@pytest.mark.parametrize("folder", ["nothing", "."])
def test_a_folder_without_reports_below_it_is_no_collection(folder, tmp_path):
    assert not collection.holds_reports(tmp_path / folder)
    assert not collection.holds_reports(paths.PACKAGE)


def test_a_study_with_the_name_of_a_table_and_a_source_of_its_own_is_listed(tmp_path):
    folder = put(tmp_path, "smoke-sotu")
    file = folder / "experiment.yaml"
    file.write_text(re.sub("^source: .*$", "source: my own question", file.read_text(), flags=re.MULTILINE))
    assert "| my own question" in overview.write(tmp_path).read_text()
