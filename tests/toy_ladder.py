"""Toy results of a ladder, for tests of code that analyses and shows them."""

from collections.abc import Callable, Mapping, Sequence

from records import toy_record, toy_score

from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import ladder
from albert_lab.studies.experiment import Experiment, named
from albert_lab.studies.ladder_results import LadderFile, LadderPoint, LadderResults

RUNGS = ("h24", "h36", "h48", "h72", "h96")
SHARED, NOT_SHARED = ({"embedding_size": "H", "sharing": name} for name in ("all-shared", "not-shared"))

Loss = Callable[[int, Mapping[str, str], int], float]  # of MLM, by the number of the rung, the row and the seed


def toy_ladder(
    loss: Loss,
    *,
    rows: Sequence[Mapping[str, str]] = (SHARED, NOT_SHARED),
    rungs: int = 5,
    seeds: int = 3,
    sop: float = 70.0,
    sops: Mapping[str, float] | None = None,
    by: Mapping[str, str] | None = None,
    experiment: Experiment | None = None,
    looks: tuple[int, ...] = (3,),
) -> LadderResults:
    """Finished runs of every rung, row and seed; compute is tenfold from one rung to the next."""
    points, runs = [], {}
    for rung, name in enumerate(RUNGS[:rungs]):
        for row in rows:
            for seed in range(seeds):
                run = f"{name}-{'-'.join(row.values())}-{seed}".replace("/", "-")
                points.append(LadderPoint(rung=name, row=dict(row), seed=seed, run=run, estimated_seconds=1.5))
                record = toy_record(name=run, seed=seed)
                scores = {
                    "mlm_accuracy": toy_score(25, loss=loss(rung, row, seed), floor=5),
                    "sop_accuracy": toy_score(
                        (sops or {}).get(row["sharing"], sop), (by or {}).get(row["sharing"], "head"), loss=0.6
                    ),
                }
                more = {"scores": scores, "train_flops_per_token": 1e8 * 10**rung}
                runs[run] = ReportedRun(record=record.model_copy(update=more))
    file = LadderFile(
        experiment=experiment or named("sharing"),
        ladder=ladder.read("size"),
        predicted_flops=1.5e20,
        command="albert-lab ladder sharing",
        looks=looks,
        points=tuple(points),
    )
    return LadderResults(file, runs)


def growing(rung: int, row: Mapping[str, str], seed: int) -> float:
    """A loss whose difference between rows is 0.1 nats at the lowest rung, and 0.1 more at each rung above."""
    noise = (0.001, -0.002, 0.002)[seed % 3] * (1 if row["sharing"] == "all-shared" else -1) * (1 + rung % 2)
    return 5.0 - 0.3 * rung + (0.1 * (rung + 1) if row["sharing"] == "all-shared" else 0.0) + noise
