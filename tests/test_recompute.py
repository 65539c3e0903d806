"""The numbers of README.md and docs/results.md, from the committed records: `python
tests/test_recompute.py` writes.

After `<!-- value REPORT; METRIC; ROW -->` stands a mean over seeds with its 95 % interval over
seeds and documents, with `ROW - ROW` a difference, after `mean` the mean alone. The rest is the
package's: after `table REPORT` its main table, after `claims CLAIM; CLAIM` verdicts of the
scoreboard, after `said REPORT` those of a report that were measured, after `count` how many there
are.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, polygamma
from scipy.stats import t

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "results.md"]
KINDS = "value|mean|table|claims|said|count"
MARKED = re.compile(rf"(<!-- ({KINDS}) (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
AXES = {"embedding_size": "E", "model.hidden_size": "H", "model.num_layers": "layers"}
# of versions, models in general, and names of tasks
OTHERS = {"3.11", "3.13", "0.07", "2.3", "1.1", "2.0"}
VERDICTS = re.compile(r"\b(NO|undecided|cannot tell)\b|\| yes \||\b\d+ (yes|claims|sentences)\b")


@cache
def numbers(report: str) -> pd.DataFrame:
    """A line a number of a run: row, run, trunk, metric, value, and n and sum by document if they
    were kept.
    """
    folder, lines = ROOT / "reports" / report, list[dict[str, Any]]()
    for point in json.loads((folder / "study.json").read_text())["points"]:
        file = folder / "runs" / f"{point['run']}.json"
        if not file.exists():
            continue
        content = json.loads(file.read_text())
        documents, values = content["record"]["documents"], dict[str, Any]()
        for name, score in content["record"]["scores"].items():
            values |= {name: score["value"], f"{name} segments": score.get("segments_floor")}
            values[f"{name.removesuffix('_accuracy')}_loss"] = score.get("loss")
        own = {"row": row(point), "run": point["run"], "trunk": trunk(folder, point["run"])}
        for metric, value in values.items():
            kept = documents.get(metric, {})
            if isinstance(kept.get("n"), str):  # the same as those of another score
                kept = kept | {"n": documents[kept["n"]]["n"]}
            lines.append(own | {"metric": metric, "value": value} | kept)
        lines += [line for column in content["columns"] for line in of_task(column, own)]
    return pd.DataFrame(lines).dropna(subset=["value"])


def of_task(column: dict[str, Any], run: dict[str, Any]) -> list[dict[str, Any]]:
    """The median of the fine-tunings of a run on a task, and what words alone give; those of random
    weights are a row of their own.
    """
    tuned, task = column["finetunings"], column["task"]
    if tuned[0]["weights"] == "random":
        name = tuned[0]["run"]
        run = {"row": f"{run['row']}, random weights", "run": name, "trunk": name}
    scores = [one["best"]["main"] for one in tuned]
    median = float(np.median([score["value"] for score in scores]))
    kept = [one["documents"] for one in tuned if one.get("documents")]
    by_document = {}
    if kept:
        by_document = {"n": kept[0]["n"], "sum": np.mean([one["sum"] for one in kept], 0).tolist()}
    words = {"metric": f"{task} words", "value": scores[0].get("lexical_floor")}
    return [run | {"metric": task, "value": median} | by_document, run | words]


def row(point: dict[str, Any]) -> str:
    """The name of the row of a point."""
    words = []
    for axis, label in point["labels"].items():
        if label[0].isdigit():
            name = AXES.get(axis, axis.rpartition(".")[2])
            words.append(f"{name}={point['values'][axis]}")
        elif label != "true":
            words.append(label)
    return ", ".join(words)


def trunk(folder: Path, run: str) -> str:
    """The run that a run goes back to."""
    while (file := folder / "runs" / f"{run}.json").exists():
        start = json.loads(file.read_text())["record"].get("start_from")
        if not start:
            break
        run = start["run"]
    return run


def start(report: str) -> str | None:
    """The name of the trained encoder that all rows of a report start from; None if they start from
    nothing.
    """
    found = re.search(
        r"^start_from: (\w[\w.-]*)$",
        (ROOT / "reports" / report / "experiment.yaml").read_text(),
        re.M,
    )
    return found and found[1]


@cache
def variances(report: str) -> pd.DataFrame:
    """The variance over seeds of each row of a scale, text and start, by metric; that of the same
    runs once.
    """
    tables = []
    for folder in sorted((ROOT / "reports" / report).parent.glob("*/")):
        name = str(folder.relative_to(ROOT / "reports"))
        if start(name) == start(report):
            tables.append(numbers(name).assign(table=name))
    rows: Any = pd.concat(tables).groupby(["table", "row", "metric"])
    lines = rows.agg(
        runs=("run", tuple), variance=("value", "var"), seeds=("value", "size")
    ).reset_index()
    return lines[lines["variance"] > 1e-12].drop_duplicates(["metric", "runs"])


def typical(report: str, metric: str) -> float:
    """The geometric mean of the variances of a scale, of which each row takes a quarter of a degree
    of freedom.
    """
    rows = variances(report).query("metric == @metric")
    if rows.empty:  # a floor has no spread
        return 0.0
    half = (rows["seeds"].to_numpy(float) - 1) / 2
    logarithms = np.log(rows["variance"].to_numpy(float)) - digamma(half) + np.log(half)
    assert len(rows) == 1 or logarithms.var(ddof=1) - polygamma(1, half).mean() < polygamma(
        1, 0.125
    )
    return float(np.exp(logarithms.mean()))


def contrast(report: str, metric: str, weights: dict[str, float]) -> list[float]:
    """A level {row: 1} or a difference {row: 1, other: -1}, with its interval over seeds and
    documents.
    """
    table = numbers(report).query("metric == @metric").sort_values("trunk")
    rows: list[Any] = [table[table["row"] == row] for row in weights]
    signs = [*weights.values()]
    values = [sign * row["value"].to_numpy(float) for sign, row in zip(signs, rows, strict=True)]
    # [seeds, documents]
    errors = [sign * residuals(row, metric) for sign, row in zip(signs, rows, strict=True)]
    effect = sum(float(value.mean()) for value in values)
    lent = 0.25
    trunks = [tuple(row["trunk"]) for row in rows]
    is_told_apart = len({*trunks[0]}) == len(trunks[0])
    if len(rows) > 1 and trunks[0] == trunks[1] and is_told_apart:
        # Rows that continue the same trunks are one, of their differences.
        values, errors, lent = [values[0] + values[1]], [errors[0] + errors[1]], 0.0
    documents = sum((error.mean(0) for error in errors), np.zeros(1))
    known = np.count_nonzero(rows[0]["n"].iloc[0]) if documents.any() else 2
    of_documents = known / (known - 1) * float((documents**2).sum())
    variance, uncertain = of_documents, of_documents**2 / (known - 1)
    for value, error in zip(values, errors, strict=True):
        seeds = len(value)
        if seeds == 1:
            continue
        df = seeds - 1.0 + lent
        own = ((seeds - 1) * float(value.var(ddof=1)) + lent * typical(report, metric)) / df
        chance = known / (known - 1) * float(error.var(0, ddof=1).sum())
        variance += max(0.0, own - chance) / seeds
        uncertain += (own / seeds) ** 2 / df
    if not variance:  # a floor has none
        return [effect] * 3
    low, high = t.interval(0.95, variance**2 / uncertain, effect, np.sqrt(variance))
    return [effect, float(low), float(high)]


def residuals(rows: pd.DataFrame, metric: str) -> np.ndarray:
    """What each document adds to the error of each score; of scores that were not kept by document
    nothing.
    """
    lines = zip(rows["n"], rows["sum"], strict=True)
    shares = [
        (np.array(right) - sum(right) / sum(n) * np.array(n)) / sum(n)
        for n, right in lines
        if isinstance(right, list)
    ]
    return np.array(shares or np.zeros((len(rows), 1))) * (1 if "loss" in metric else 100)


@cache
def on_scoreboard() -> tuple[list[Any], list[Any]]:
    """The claims of the paper with what all reports say of them, and those of a trained encoder."""
    # numbers work without the package
    from albert_lab.analysis.sentences import of_encoders, reports, sentences

    found = reports(ROOT / "reports")
    return sentences(found), of_encoders(found)


def of_package(kind: str, spec: str, page: Path) -> str:
    """What the package says: a table of claims, the list or the table of a report, or a count."""
    from albert_lab.analysis.analysis import read
    from albert_lab.report import markdown, tables, wording
    from albert_lab.studies.claims import Kind

    if kind == "count":
        return wording.of_sentences(on_scoreboard()[0])
    if kind == "table":
        table = tables.main_table(read(ROOT / "reports" / spec))
        return f"\n\n{markdown.as_table(table)}\n\n"
    if kind == "said":
        lines = [
            f"- {wording.short(claim)}: {', '.join(map(shown, by.values()))}"
            for claim, by in wording.claims_of(read(ROOT / "reports" / spec))
            if any(words.number for words in by.values())
        ]
        return "\n\n" + "\n".join(lines) + "\n\n"
    from_scratch, of_encoder = ({line.claim.short: line for line in of} for of in on_scoreboard())
    lines = ["| claim | by loss | by tasks | measured | where |", "|---|---|---|---|---|"]
    for name in re.split(r";\s+", spec):
        line = from_scratch.get(name) or of_encoder[name]
        said = wording.words_of(line)
        by_loss = said.get(Kind.NUMBER) or said.get(Kind.LOSS)
        words = [of.word if of else "" for of in (by_loss, said.get(Kind.TASKS))]
        kind_of, number = next((of, words.number) for of, words in said.items() if words.number)
        folder = line.by[kind_of].folder
        link = Path(os.path.relpath(folder, page.parent)) / "report.md"
        lines.append(f"| {name} | {' | '.join(words)} | {number} | [{folder.name}]({link}) |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def shown(words: Any) -> str:
    number = f" ({words.number})" if words.number else ""
    return f"**{words.word}** {words.kind}{number}"


def made(kind: str, spec: str, page: Path) -> str:
    if kind not in ("value", "mean"):
        return of_package(kind, spec, page)
    report, metric, rows = re.split(r";\s+", spec)
    weights: dict[str, float] = dict(zip(rows.split(" - "), (1.0, -1.0), strict=False))
    digits = 2 if "loss" in metric else 1
    effect, *ends = (
        f"{round(number, digits) + 0.0:.{digits}f}" for number in contrast(report, metric, weights)
    )
    unit = "%" if len(weights) == 1 else "points"
    if "loss" in metric:
        unit = "nats"
    return f"{effect} {unit}" + (f" [{', '.join(ends)}]" if kind == "value" else "")


def rewritten(page: Path, text: str) -> str:
    return MARKED.sub(lambda found: found[1] + made(found[2], found[3], page) + found[5], text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_number_and_verdict_of_a_page_is_that_of_the_records_and_marked(page):
    text = page.read_text()
    assert text == rewritten(page, text)
    rest = MARKED.sub("", text)
    assert set(re.findall(r"(?<![\w.=])\d+\.\d+(?![\w.])", rest)) <= OTHERS
    assert not VERDICTS.search(re.sub("`[^`]*`", "", rest)), VERDICTS.search(rest)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page, page.read_text()))
