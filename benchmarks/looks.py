"""Error rates, power and cost of planned looks at tables of random numbers, next to a single look, as Markdown.

`python benchmarks/looks.py [TABLES]`: the number of drawn tables behind each printed number, 1,000 by default.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from power import ALPHA, FAMILIES, NOISES, ROWS

from albert_lab.analysis.looks import levels
from albert_lab.analysis.statistics import PooledSpread, holm
from albert_lab.report.markdown import as_table
from albert_lab.studies.seed_plan import Spending

LOOKS = (3, 5, 8)
SPENDING: tuple[Spending, ...] = ("pocock", "obrien-fleming")
UNPLANNED = "each look at 5 %"
# A small table, such as Table 5, and one of ROWS rows: the pairs of rows whose first one is claimed to be better.
TABLES = {3: ((0, 1), (0, 2), (1, 2)), ROWS: FAMILIES[8]}


@dataclass(frozen=True)
class Rates:
    """Of the drawn tables, the shares that are decided at the first look and at any, in percent; and the mean seeds."""

    first: float
    ever: float
    seeds: float


def simulate(
    drawn: np.ndarray, looks: Sequence[int], pairs: Sequence[tuple[int, int]], *, any_claim: bool
) -> dict[str, Rates]:
    """The rates of every way to look at tables, which stop at the look that decides them.

    Args:
        drawn: the values of tables, the same for all ways. [tables, rows, seeds]
        looks: the numbers of seeds.
        pairs: rows; each claim says that the first is better.
        any_claim: whether a table is decided if any claim is, in either direction; else the first claim is supported.
    """
    ways = {name: levels(looks, name, ALPHA, len(pairs)) for name in SPENDING} | {UNPLANNED: (ALPHA,) * len(looks)}
    decided_at: dict[str, list[int | None]] = {name: [] for name in ways}
    for table in drawn:
        by_look = [_p_values(table[:, :n], pairs) for n in looks]
        for name, needed in ways.items():
            hits = [
                min(p) < level if any_claim else p[0] < level and effect > 0
                for (p, effect), level in zip(by_look, needed, strict=True)
            ]
            decided_at[name].append(hits.index(True) if any(hits) else None)
    return {name: _rates(places, looks) for name, places in decided_at.items()}


def _rates(places: Sequence[int | None], looks: Sequence[int]) -> Rates:
    seeds = [looks[-1 if place is None else place] for place in places]
    ever = sum(place is not None for place in places)
    return Rates(100 * places.count(0) / len(places), 100 * ever / len(places), sum(seeds) / len(places))


def _p_values(table: np.ndarray, pairs: Sequence[tuple[int, int]]) -> tuple[list[float], float]:
    """Holm's p-values, two-sided, and the effect of the first pair."""
    spread = PooledSpread([dict(enumerate(row)) for row in table])
    estimates = [spread.estimate({first: 1.0, second: -1.0}) for first, second in pairs]
    return holm([min(1.0, 2 * min(estimate.above(0), estimate.below(0))) for estimate in estimates]), estimates[0].value


def false_decisions(noise: str, rows: int, tables: int, rng: np.random.Generator) -> dict[str, Rates]:
    """How often a table decides any claim although its rows are equal."""
    return simulate(NOISES[noise](rng, tables, LOOKS[-1])[:, :rows], LOOKS, TABLES[rows], any_claim=True)


def power(effect: float, rows: int, tables: int, rng: np.random.Generator) -> tuple[dict[str, Rates], dict[int, Rates]]:
    """How often the first claim is supported if its row is better by effect, in sd: by looks, and by a single one."""
    drawn = NOISES["equal spreads"](rng, tables, LOOKS[-1])[:, :rows]
    drawn[:, 0] += effect
    single = {n: simulate(drawn[:, :, :n], (n,), TABLES[rows], any_claim=False)[UNPLANNED] for n in LOOKS[1:]}
    return simulate(drawn, LOOKS, TABLES[rows], any_claim=False), single


def as_markdown(tables: int, seed: int = 0) -> str:
    """Both simulations as tables in Markdown, each cell from so many random tables; fixed by the seed."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    header = ["rows", "claims", *SPENDING]
    shown = [
        [str(rows), str(len(pairs)), *(_levels(name, len(pairs)) for name in SPENDING)]
        for rows, pairs in TABLES.items()
    ]
    wrong = []
    for noise in NOISES:
        for rows in TABLES:
            rates = false_decisions(noise, rows, tables, rng)
            wrong.append([noise, str(rows), *(f"{rates[name].ever:.1f}" for name in (*SPENDING, UNPLANNED))])
    right = []
    for rows in TABLES:
        for effect in (1.0, 2.0, 3.0, 4.0, 6.0, 10.0):
            looked, single = power(effect, rows, tables, rng)
            cells = [
                (f"{columns.first:.0f}", f"{columns.ever:.0f}", f"{columns.seeds:.1f}") for columns in looked.values()
            ][:2]
            right.append([str(rows), f"{effect:g}", *chain(*cells), *(f"{single[n].ever:.0f}" for n in LOOKS[1:])])
    columns = [f"{name}: {what}" for name in SPENDING for what in ("at 3 seeds", "in all", "seeds")]
    return "\n\n".join(
        [
            f"Looks at {', '.join(map(str, LOOKS))} seeds; levels of Holm's p-values:",
            as_table(header, shown),
            f"All rows equal: tables that decide a claim at any look, in percent of {tables:,} (at most 5):",
            as_table(["noise", "rows", *SPENDING, UNPLANNED], wrong),
            "One claim true, its row better by an effect in sd: tables that support it at 3 seeds and in all, the mean"
            " number of seeds, and a single look at 5 %:",
            as_table(["rows", "effect", *columns, "5 seeds", "8 seeds"], right),
        ]
    )


def _levels(name: Spending, claims: int) -> str:
    return " / ".join(f"{level:.4f}" for level in levels(LOOKS, name, ALPHA, claims))


if __name__ == "__main__":
    print(as_markdown(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000))
