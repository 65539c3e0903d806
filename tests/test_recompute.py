"""The numbers and verdicts of README.md and docs/results.md, from the committed records: `python
tests/test_recompute.py` writes.

After `<!-- value REPORT; METRIC; ROW -->` stands a mean over seeds with its 95 % interval over
seeds and documents, with `ROW - ROW` a difference, after `mean` the mean alone (of a score, or of a
column beside it, such as `METRIC segments`), after `table REPORT` its main table, after `claims
CLAIM; CLAIM` verdicts of the scoreboard, after `said REPORT` those of a report that were measured,
after `count` how many there are.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import t

from albert_lab.analysis import analysis
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.contrasts import contrast
from albert_lab.analysis.sentences import of_encoders, reports, sentences
from albert_lab.report import markdown, tables, wording
from albert_lab.studies.claims import Kind

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "results.md"]
KINDS = "value|mean|table|claims|said|count"
MARKED = re.compile(rf"(<!-- ({KINDS}) (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
# of versions, models in general, and names of tasks
OTHERS = {"3.11", "3.13", "0.07", "2.3", "1.1", "2.0"}
VERDICTS = re.compile(r"\b(NO|undecided|cannot tell)\b|\| yes \||\b\d+ (yes|claims|sentences)\b")


@cache
def read(report: str) -> Analysis:
    return analysis.read(ROOT / "reports" / report)


@cache
def on_scoreboard() -> tuple[list[Any], list[Any]]:
    """The claims of the paper with what all reports say of them, and those of a trained encoder."""
    found = reports(ROOT / "reports")
    return sentences(found), of_encoders(found)


def value(report: str, metric: str, rows: str) -> str:
    """A level or a difference of two rows, with its interval."""
    weights: dict[str, float] = dict(zip(rows.split(" - "), (1.0, -1.0), strict=False))
    found = contrast(read(report).frame, metric, weights)
    low, high = number(found.low, metric), number(found.high, metric)
    unit = "%" if len(weights) == 1 else "points"
    if metric.endswith("_loss"):
        unit = "nats"
    return f"{number(found.effect, metric)} {unit} [{low}, {high}]"


def mean(report: str, metric: str, row: str) -> str:
    """The mean of a score, or of a column beside it."""
    metric, _, column = metric.partition(" ")
    return f"{number(read(report).summary.loc[(metric, row), column or 'mean'], metric)} %"


def number(amount: Any, metric: str) -> str:
    digits = 2 if metric.endswith("_loss") else 1
    return f"{round(amount, digits) + 0.0:.{digits}f}"


def claims(names: list[str], page: Path) -> str:
    """A table of claims, each at the largest scale that can tell it."""
    from_scratch, of_encoder = ({line.claim.short: line for line in of} for of in on_scoreboard())
    lines = ["| claim | by loss | by tasks | measured | where |", "|---|---|---|---|---|"]
    for name in names:
        line = from_scratch.get(name) or of_encoder[name]
        said = wording.words_of(line)
        by_loss = said.get(Kind.NUMBER) or said.get(Kind.LOSS)
        words = [of.word if of else "" for of in (by_loss, said.get(Kind.TASKS))]
        kind, measured = next((of, words.number) for of, words in said.items() if words.number)
        folder = line.by[kind].folder
        link = Path(os.path.relpath(folder, page.parent)) / "report.md"
        lines.append(f"| {name} | {' | '.join(words)} | {measured} | [{folder.name}]({link}) |")
    return "\n".join(lines)


def said(report: str) -> str:
    """The claims of a report that were measured, a line each."""
    lines = [
        f"- {wording.short(claim)}: {', '.join(shown(*item) for item in by.items())}"
        for claim, by in wording.claims_of(read(report))
        if any(words.number for words in by.values())
    ]
    return "\n".join(lines)


def shown(kind: Kind, words: wording.Words) -> str:
    number = f" ({words.number})" if words.number else ""
    return f"**{words.word}** {wording.KINDS[kind]}{number}"


def made(kind: str, spec: str, page: Path) -> str:
    words = re.split(r";\s+", spec)
    if kind == "count":
        return wording.of_sentences(on_scoreboard()[0])
    if kind in ("value", "mean"):
        return value(*words) if kind == "value" else mean(*words)
    if kind == "table":
        text = markdown.as_table(tables.main_table(read(spec)))
    else:
        text = said(spec) if kind == "said" else claims(words, page)
    return f"\n\n{text}\n\n"


def rewritten(page: Path, text: str) -> str:
    return MARKED.sub(lambda found: found[1] + made(found[2], found[3], page) + found[5], text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_number_and_verdict_of_a_page_is_that_of_the_records_and_marked(page):
    text = page.read_text()
    assert text == rewritten(page, text)
    rest = MARKED.sub("", text)
    assert set(re.findall(r"(?<![\w.=])\d+\.\d+(?![\w.])", rest)) <= OTHERS
    assert not VERDICTS.search(re.sub("`[^`]*`", "", rest)), VERDICTS.search(rest)


@pytest.mark.parametrize("metric", ["sop_accuracy", "mlm_loss"])
def test_intervals_of_a_report_are_those_of_other_code_from_its_records(metric):
    report, scale = "gpu-quarter-articles-novels/sharing-quarter", 100 if "acc" in metric else 1
    values: dict[str, list[float]] = {"all-shared": [], "not-shared": []}
    errors: dict[str, list[np.ndarray]] = {"all-shared": [], "not-shared": []}
    n = np.zeros(0)
    for file in (ROOT / "reports" / report).glob("runs/*.json"):
        record = json.loads(file.read_text())["record"]
        kept = record["documents"][metric]
        # A name is that of another score of the same documents.
        shared = record["documents"].get(str(kept["n"]), kept)
        n, right = np.array(shared["n"]), np.array(kept["sum"])
        row = record["config"]["sharing"]["name"]
        values[row].append(scale * right.sum() / n.sum())
        errors[row].append(scale * (right - right.sum() / n.sum() * n) / n.sum())
    known = np.count_nonzero(n)
    factor, seeds = known / (known - 1), 3
    variances = np.array([np.var(own, ddof=1) for own in values.values()])
    # Two rows of two degrees of freedom lend a quarter of one to each.
    lent = np.exp(np.log(variances).mean() - digamma(1))
    over_seeds = dict(zip(values, (2 * variances + 0.25 * lent) / 2.25 / seeds, strict=True))
    for weights in ({"all-shared": 1.0}, {"all-shared": 1.0, "not-shared": -1.0}):
        effect = sum(weight * np.mean(values[row]) for row, weight in weights.items())
        parts = [weight * np.mean(errors[row], 0) for row, weight in weights.items()]
        variance = factor * (np.sum(parts, 0) ** 2).sum()
        uncertain = variance**2 / (known - 1)
        for row in weights:
            # What a seed answers by chance is in both variances, and counts once.
            chance = factor * np.var(errors[row], 0, ddof=1).sum() / seeds
            variance += max(0.0, over_seeds[row] - chance)
            uncertain += over_seeds[row] ** 2 / 2.25
        expected = t.interval(0.95, variance**2 / uncertain, effect, np.sqrt(variance))
        found = contrast(read(report).frame, metric, weights)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-4)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page, page.read_text()))
