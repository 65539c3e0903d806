"""The numbers of README.md and docs/results.md, from the committed records: `python tests/test_recompute.py` writes.

After `<!-- value REPORT; METRIC; ROW -->` stands a mean over seeds with its 95 % interval over seeds and documents,
with `ROW - ROW` a difference, after `mean` the mean alone, after `table REPORT; METRIC, METRIC` a line a row.
"""

import json
import re
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "results.md"]
MARKED = re.compile(r"(<!-- (value|mean|table) (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
AXES = {"embedding_size": "E", "model.hidden_size": "H", "model.num_layers": "layers"}
HEADINGS = {"nsp_released": "NSP as released %", "last_degrees": "angle of the last layer", "blimp": "BLiMP %"}
OTHERS = {"78.9", "3.11", "3.13", "0.07", "2.3", "1.1", "2.0"}  # of the paper, of versions, and of models in general


@cache
def numbers(report: str) -> pd.DataFrame:
    """A line a number of a run: row, seed, metric, value, and n and sum by document if they were kept."""
    folder, lines = ROOT / "reports" / report, []
    points = json.loads((folder / "study.json").read_text())["points"]
    for point, file in ((of, file) for of in points for file in folder.glob(f"runs/{of['run']}.json")):
        content = json.loads(file.read_text())
        record, values = content["record"], {}
        for name, score in record["scores"].items():
            values |= {name: score["value"], f"{name} segments": score.get("segments_floor")}
            values |= {name.removesuffix("_accuracy") + "_loss": score.get("loss")}
        tuned = {(its["task"], its["finetunings"][0]["weights"]): its["finetunings"] for its in content["columns"]}
        values |= {"last_degrees": content["layers"][-1]["degrees"]} if content["layers"] else {}  # of the mean token
        values |= {" ".join(key): np.median([one["best"]["main"]["value"] for one in of]) for key, of in tuned.items()}
        values |= {f"{key[0]} words": of[0]["best"]["main"].get("lexical_floor") for key, of in tuned.items()}
        ours = {axis: f"{AXES.get(axis, axis.rpartition('.')[2])}={value}" for axis, value in point["values"].items()}
        labels = {axis: label for axis, label in point["labels"].items() if label != "true"}
        row = ", ".join(ours[axis] if label[0].isdigit() else label for axis, label in labels.items())
        for metric, value in values.items():
            n, right = (record["documents"].get(metric, {}).get(key) for key in ("n", "sum"))
            n = record["documents"][n]["n"] if isinstance(n, str) else n  # the same as those of another score
            lines.append((row, point["seed"], metric, value, n, right))
    return pd.DataFrame(lines, columns=["row", "seed", "metric", "value", "n", "sum"]).dropna(subset=["value"])


def contrast(report: str, metric: str, weights: dict[str, float]) -> list[float]:
    """A level {row: 1} or a difference {row: 1, other: -1}, with its interval over seeds and documents."""
    table = numbers(report).query("metric == @metric")
    design, of_seeds = (pd.get_dummies(table[key], dtype=float) for key in ("row", "seed"))
    vector = np.array([weights.get(row, 0) for row in design])
    of_rows = [{*table.groupby("row").get_group(row)["seed"]} for row in weights]
    if not vector.sum() and 2 * len(set.intersection(*of_rows)) > max(map(len, of_rows)):  # what a seed does to all
        design = np.hstack([design, of_seeds.iloc[:, :-1].sub(of_seeds.iloc[:, -1], axis=0)])
        vector = np.append(vector, np.zeros(design.shape[1] - len(vector)))
    design, values = np.asarray(design), table["value"].to_numpy(float)
    inverse, df = np.linalg.inv(design.T @ design), max(len(values) - design.shape[1], 1)
    means = inverse @ design.T @ values
    parts, errors = [(((values - design @ means) ** 2).sum() / df * vector @ inverse @ vector, df)], np.zeros(1)
    for row, weight in weights.items():
        own = table[table["row"] == row].dropna()
        for n, right in zip(map(np.array, own["n"]), map(np.array, own["sum"]), strict=True):
            error = (right - right.sum() / n.sum() * n) / n.sum() * (1 if "loss" in metric else 100)
            errors, known = errors + error * weight / len(own), np.count_nonzero(n)
            parts[1:] = [(known / (known - 1) * (errors**2).sum(), known - 1)]
    variance = sum(part for part, _ in parts) or 1e-12  # a floor has none
    joint = variance**2 / (sum(part**2 / of_part for part, of_part in parts) or 1e-24)
    return [float(n) for n in (vector @ means, *t.interval(0.95, joint, vector @ means, np.sqrt(variance)))]


def made(kind: str, spec: str) -> str:
    report, metric, *rows = spec.split("; ")
    if kind == "table":
        wanted, table = metric.split(", "), numbers(report).groupby(["row", "metric"], sort=False)["value"]
        cells = table.agg(lambda its: f"{its.mean():.1f} ± {its.std():.1f}")
        heads = [HEADINGS.get(name, re.split("[_ ]", name)[0].upper() + " %") for name in wanted]
        lines = [["row", *heads], ["---"] * (len(wanted) + 1)]
        lines += [[row, *(cells[row, name] for name in wanted)] for row in cells.index.unique("row")]
        return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"
    weights: dict[str, float] = dict(zip(rows[0].split(" - "), (1.0, -1.0), strict=False))
    effect, *ends = (f"{number:.{2 if 'loss' in metric else 1}f}" for number in contrast(report, metric, weights))
    unit = "nats" if "loss" in metric else "degrees" if "degrees" in metric else "%" if len(weights) == 1 else "points"
    return f"{effect} {unit}" + (f" [{', '.join(ends)}]" if kind == "value" else "")


rewritten = partial(MARKED.sub, lambda found: found[1] + made(found[2], found[3]) + found[5])


def test_every_number_of_both_pages_is_that_of_the_records():
    for text in map(Path.read_text, PAGES):
        assert text == rewritten(text)
        assert set(re.findall(r"(?<![\w.=])\d+\.\d+(?![\w.])", MARKED.sub("", text))) <= OTHERS


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page.read_text()))
