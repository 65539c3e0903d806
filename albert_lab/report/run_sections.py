"""The sections of a report on its runs: their cost, single scores and provenance."""

from collections.abc import Sequence

from albert_lab.analysis.speedups import speedups
from albert_lab.report.markdown import MISSING, as_table, decimal, distinct, interval, mean_percent, number
from albert_lab.report.templates import call, fill
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED, Data, Provenance, RunRecord
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, Spread, axis_labels, axis_names, intrinsic_columns, paper_cells

MUCH_TEXT = 0.1
_LOADED = ("training_seconds", TRAINING_SPEED, INFERENCE_SPEED)


def dropped(runs: Sequence[RunRecord]) -> str:
    """The share of text dropped because a chunk has a single sentence, in runs that drop any; empty if it is small."""
    dropping = [run.data for run in runs if run.data.dropped_text_share > 0]
    if not dropping or max(data.dropped_text_share for data in dropping) < MUCH_TEXT:
        return ""
    chunks = mean_percent(data.dropped_chunk_share for data in dropping)
    text = mean_percent(data.dropped_text_share for data in dropping)
    return call("note.md.j2", "dropped", chunks, text, len(dropping) == len(runs))


def sizes_and_speeds(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> str:
    """Section on parameters, and speeds relative to one row, next to the paper's; empty if the study names no row."""
    if not experiment.speed_relative_to:
        return ""
    speeds = [speedups(table, experiment.speed_relative_to, column) for column in (TRAINING_SPEED, INFERENCE_SPEED)]
    lines = []
    for row, *ratios in zip(table, *speeds, strict=True):
        training, inference = (MISSING if ratio is None else f"{ratio:.2f}x" for ratio in ratios)
        paper = paper_cells(experiment, row)
        line = dict(zip(axis_names(axes), axis_labels(experiment, row, axes), strict=True))
        line |= {"parameters": _cost(row.spread("parameters"), has_spread=False)}
        line |= {"paper parameters": paper.get("parameters", MISSING)}
        line |= {"speed-up": training, "inference speed-up": inference}
        lines.append(line | {"paper speed-up": paper.get("speedup", MISSING)})
    header = [name for name in lines[0] if any(line[name] != MISSING for line in lines)]
    cells = as_table(header, [[line[name] for name in header] for line in lines])
    return fill("speeds.md.j2", table=cells)


def costs(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> str:
    """The cost of the runs of each row, as means over seeds."""
    header = axis_names(axes)
    header += ["parameters", "training FLOPs per token", "steps", "tokens", "training seconds", "tokens/s"]
    header += ["inference tokens/s", "peak MiB"]
    columns = ["parameters", "train_flops_per_token", "steps", "tokens", *_LOADED]
    body = []
    for row in table:
        line = axis_labels(experiment, row, axes)
        for column in columns:
            line.append(_cost(row.spread(column), has_spread=column in _LOADED))
        memory = row.spread("peak_memory_bytes")
        line.append(MISSING if memory is None else number(memory.mean / 2**20))
        body.append(line)
    return as_table(header, body)


def _cost(spread: Spread | None, *, has_spread: bool) -> str:
    if spread is None:
        return MISSING
    return number(spread.mean) + (f" ± {number(spread.sd)}" if has_spread and spread.sd is not None else "")


def every_run(experiment: Experiment, finished: Sequence[ReportedRun]) -> str:
    columns = intrinsic_columns(experiment)
    header = [
        "run",
        *(f"{column.heading} {column.unit} [95 %] (n; floors)" for column in columns),
        "scored by",
        "training loss",
    ]
    body = []
    for run in finished:
        scores = [run.scores.get(column.key) for column in columns]
        cells = []
        for score in scores:
            if score is None:
                cells.append(MISSING)
                continue
            floors = ", ".join(map(decimal, score.floors.values()))
            floors += "" if score.auc is None else f"; AUC {decimal(score.auc)}"
            cells.append(f"{decimal(score.value)} {interval(score)} ({score.n:,}; {floors})")
        by = ", ".join(sorted({score.by for score in scores if score}))
        body.append([f"`{run.name}`", *cells, by, f"{run.record.training.final_loss:.3f}"])
    return as_table(header, body)


def provenance(runs: Sequence[RunRecord]) -> str:
    origins, data, training = ([getattr(run, part) for run in runs] for part in ("provenance", "data", "training"))
    values = {
        "versions": (origin.albert_lab for origin in origins),
        "results_versions": (run.results_version for run in runs),
        "packages": (origin.software for origin in origins),
        "machines": (origin.machine for origin in origins),
        "devices": (origin.device_names for origin in origins),
        "precisions": (origin.precision for origin in origins),
        "threads": (origin.threads for origin in origins),
        "corpora": (run.fingerprints["corpus"] for run in runs),
        "tokenizers": (run.fingerprints["tokenizer"] for run in runs),
        "evaluation_sets": (run.evaluation_set for run in runs),
        "finished": (origin.finished for origin in origins),
    }
    return fill(
        "provenance.md.j2",
        **{name: distinct(of_runs) for name, of_runs in values.items()},
        commits=_commits(origins),
        runs=len(runs),
        tokens=number(sum(origin.tokens for origin in training)),
        training_seconds=number(sum(origin.training_seconds for origin in training)),
        total_seconds=number(sum(origin.total_seconds for origin in training)),
        data_wait=f"{100 * max(origin.data_wait_share for origin in training):.2f}",
        padding=mean_percent(origin.padding_share for origin in data),
        dropped_chunks=mean_percent(origin.dropped_chunk_share for origin in data),
        dropped_text=mean_percent(origin.dropped_text_share for origin in data),
        label_shares=_label_shares(data),
    )


def _label_shares(data: Sequence[Data]) -> str:
    shares: dict[str, list[float]] = {}
    for stats in data:
        of_kinds = dict(sorted(stats.label_shares.items())) | {"across documents": stats.cross_document_share}
        for kind, share in of_kinds.items():
            shares.setdefault(kind, []).append(share)
    return ", ".join(
        f"{kind} {min(of_runs):.3f} to {max(of_runs):.3f} ({len(of_runs)} run{'s' if len(of_runs) > 1 else ''})"
        for kind, of_runs in shares.items()
    )


def _commits(origins: Sequence[Provenance]) -> str:
    """The commits of the code, if recorded; runs of an installed package have none."""
    commits = [origin.code for origin in origins if origin.code]
    without = (
        f" ({len(origins) - len(commits)} of {len(origins)} runs have none)" if len(commits) < len(origins) else ""
    )
    return f"commit {distinct(commits)}{without}, " if commits else ""
