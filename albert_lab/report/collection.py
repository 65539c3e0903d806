"""The reports under one folder, gathered by scale and corpus: of the paper's experiments, and of own studies."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from albert_lab.analysis.analysis import Analysis, analyse
from albert_lab.analysis.decisions import Decision, Verdict
from albert_lab.config.compose import load
from albert_lab.report import report, verdicts
from albert_lab.report.departures import own_parts
from albert_lab.report.finetuning import absent_columns
from albert_lab.studies import paper
from albert_lab.studies import study as studies
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study


@dataclass(frozen=True)
class Entry:
    """One experiment in a collection: its report's folder and analysis, None without a report."""

    experiment: Experiment
    folder: Path | None
    analysis: Analysis

    @property
    def own_parts(self) -> list[str]:
        """The parts of its runs that are own code, as settings: with them they are not the paper's models."""
        return own_parts(run.record for run in self.analysis.finished)

    @property
    def unscored_tasks(self) -> list[str]:
        """The titles of its tasks that no run has a score for."""
        return absent_columns(self.experiment, self.analysis.finished)

    @property
    def missing_runs(self) -> dict[str, str]:
        """Its runs without results and its failed fine-tunings, with the reasons, as in the section of its report."""
        reasons = {name: reason for row in self.analysis.rows for name, reason in row.missing.items()}
        points = self.analysis.study.points
        reasons |= {f"{point.run}, fine-tuning": point.failed_tasks for point in points if point.failed_tasks}
        return reasons

    @property
    def missing(self) -> dict[str, str]:
        """All that is missing, with the reasons: runs, fine-tunings, and tasks."""
        if self.folder is None:
            return {self.experiment.name: f"no report; `albert-lab {self.experiment.name}` makes one"}
        absent = ", ".join(self.unscored_tasks)
        tasks = {f"{self.experiment.name}, columns": f"no scores of {absent}"} if absent else {}
        return self.missing_runs | tasks

    def as_dict(self) -> dict[str, Any]:
        """The entry as plain data; None without a report."""
        return {
            "experiment": self.experiment.name,
            "source": self.experiment.source,
            "report": str(self.folder / report.REPORT) if self.folder else None,
            "rows": len(self.analysis.rows),
            "rows_with_runs": sum(bool(row.runs) for row in self.analysis.rows),
            "seeds": self.analysis.study.seeds,
            "missing": self.missing,
            "verdicts": verdicts.as_data(self.analysis.verdicts, self.analysis),
            "companions": verdicts.as_data(self.analysis.companions, self.analysis),
            "agreement": asdict(self.analysis.agreement),
        }


# A sentence of the paper that is tested by several measures or in several reports, some for it and some against it.
DIFFER = "tests differ"
OUTCOMES = (*map(str, Decision), DIFFER)


def by_sentence(entries: Iterable[Entry]) -> list[list[Verdict]]:
    """The verdicts on each sentence: its quote, section and source, whatever measures and experiments test it."""
    verdicts_on: dict[tuple[str, str | None, str], list[Verdict]] = {}
    for entry in entries:
        for verdict in entry.analysis.verdicts:
            sentence = (verdict.claim.quote, verdict.claim.section, entry.experiment.source)
            verdicts_on.setdefault(sentence, []).append(verdict)
    return list(verdicts_on.values())


def outcome(decisions: Iterable[Decision]) -> str:
    """The verdict on a sentence, one of OUTCOMES: undecided while one of its tests is; tests not learnt say nothing."""
    found = set(decisions) - {Decision.NOT_RUN}
    said = found - {Decision.NOT_LEARNT} or found or {Decision.NOT_RUN}
    if len(said - {Decision.UNDECIDED}) > 1:
        return DIFFER
    return str(Decision.UNDECIDED if Decision.UNDECIDED in said else said.pop())


def outcomes(entries: Iterable[Entry]) -> dict[str, int]:
    """The number of sentences with each outcome: a sentence counts once."""
    counts = Counter(outcome(verdict.decision for verdict in tests) for tests in by_sentence(entries))
    return {name: counts[name] for name in OUTCOMES}


def _without_report(experiment: Experiment) -> Entry:
    return Entry(experiment, None, Analysis(Study(experiment, (), ()), ()))


@dataclass(frozen=True)
class Cost:
    """The cost of the runs and fine-tunings of a collection, each counted once."""

    runs: int
    tokens: int
    training_seconds: float
    total_seconds: float
    finetunings: int
    finetuning_seconds: float
    machines: tuple[str, ...]


@dataclass(frozen=True)
class Collection:
    """Every experiment of the paper at one scale on one corpus, and own studies, which no count of claims has."""

    scale: str
    corpus: str
    entries: tuple[Entry, ...]
    own: tuple[Entry, ...] = ()

    @property
    def reported(self) -> list[Entry]:
        """The experiments of the paper with a report."""
        return [entry for entry in self.entries if entry.folder]

    @property
    def counted(self) -> list[Entry]:
        """The experiments of the paper as totals count them: a report of runs with own code is none."""
        return [_without_report(entry.experiment) if entry.own_parts else entry for entry in self.entries]

    @property
    def decisions(self) -> set[Decision]:
        """Those of the paper's claims, each of them by itself."""
        return {verdict.decision for entry in self.entries for verdict in entry.analysis.verdicts}

    @property
    def cost(self) -> Cost:
        entries = (*self.entries, *self.own)
        runs = {run.name: run.record for entry in entries for run in entry.analysis.finished}.values()
        tuned = {
            (run.name, record.task, record.seed): record.total_seconds
            for entry in entries
            for run in entry.analysis.finished
            for column in run.columns
            for record in column.finetunings
        }
        return Cost(
            runs=len(runs),
            tokens=sum(run.training.tokens for run in runs),
            training_seconds=sum(run.training.training_seconds for run in runs),
            total_seconds=sum(run.training.total_seconds for run in runs),
            finetunings=len(tuned),
            finetuning_seconds=sum(tuned.values()),
            machines=tuple(dict.fromkeys(f"{run.provenance.machine}, {run.provenance.device}" for run in runs)),
        )

    @property
    def missing(self) -> dict[str, str]:
        return {name: reason for entry in self.entries for name, reason in entry.missing.items()}

    def as_dict(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "corpus": self.corpus,
            "experiments": [entry.as_dict() for entry in self.entries],
            "own": [entry.as_dict() for entry in self.own],
            "decisions": outcomes(self.counted),
            "missing": self.missing,
            "cost": vars(self.cost),
        }


def read(root: Path) -> list[Collection]:
    """The collections of the reports in `<root>/<place>/<name>` folders, the one with most training first.

    A report of a single model belongs to none. An experiment with a different corpus, such as the one on additional
    data, belongs to the collection of the default corpus, unless that has none or has another report of it.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    known = {experiment.name: experiment for experiment in paper.experiments()}
    by_place: dict[tuple[str, str], dict[str, Entry]] = {}
    own: dict[tuple[str, str], list[Entry]] = {}
    of_own_corpus: list[tuple[str, Entry, Study]] = []
    for file in _experiment_files(root):
        name = file.parent.name
        study = studies.read(file.parent)
        study = replace(study, experiment=study.experiment.model_copy(update={"name": name}))
        entry, place = Entry(study.experiment, file.parent, analyse(study)), (study.scale, study.corpus)
        if name not in known:
            own.setdefault(place, []).extend([entry] if study.axes else [])
        elif f"corpus={study.corpus}" in study.experiment.fixed:
            of_own_corpus.append((name, entry, study))
        else:
            by_place.setdefault(place, {})[name] = entry
    for name, entry, study in of_own_corpus:
        default, place = (study.scale, load().corpus.name), (study.scale, study.corpus)
        is_of_default = name not in by_place.get(default, {}) and (default in by_place or place not in by_place)
        by_place.setdefault(default if is_of_default else place, {})[name] = entry
    collections = [
        Collection(
            *place,
            tuple(by_place.get(place, {}).get(name) or _without_report(known[name]) for name in known),
            tuple(own.get(place, ())),
        )
        for place in dict.fromkeys([*by_place, *(place for place, entries in own.items() if entries)])
    ]
    return sorted(collections, key=lambda collection: -collection.cost.tokens)


def holds_reports(root: Path) -> bool:
    """Whether a folder is not a report and has reports two levels below it."""
    return not (root / studies.EXPERIMENT).exists() and any(True for _ in _experiment_files(root))


def _experiment_files(root: Path) -> Iterable[Path]:
    return sorted(root.glob(f"*/*/{studies.EXPERIMENT}"))
