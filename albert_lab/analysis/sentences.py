"""The sentences of the paper over all reports below a folder: each at the largest scale at which it was run."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert_lab.analysis.analysis import Analysis, read
from albert_lab.analysis.verdicts import CANNOT_TELL, UNDECIDED
from albert_lab.studies import experiment as experiments
from albert_lab.studies.study import EXPERIMENT

MIXED = "mixed"


@dataclass(frozen=True)
class Sentence:
    """A sentence of the paper, and what the runs of one report say of it.

    Attributes:
        verdict: one of analysis/verdicts.py, or mixed if it holds by one score and not by another.
        deciding: the line of the verdicts that speaks for it: of its tests, the first with this verdict.
        tests: the number of its tests that can tell something.
        report: the folder of the report, and its analysis; None if it was not run.
    """

    quote: str
    source: str
    verdict: str
    deciding: Any
    tests: int
    report: tuple[Path, Analysis] | None

    @property
    def can_tell(self) -> bool:
        return self.report is not None and bool(self.deciding["can_tell"])


def outcome(verdicts: set[str]) -> str:
    """The verdict on a sentence that several scores test: that of those which can tell something."""
    said = verdicts - {CANNOT_TELL} or {CANNOT_TELL}
    if len(said - {UNDECIDED}) > 1:
        return MIXED
    return UNDECIDED if UNDECIDED in said else said.pop()


def reports(root: Path, only: Container[Path] | None = None) -> dict[Path, Analysis]:
    """The reports in `<root>/<place>/<name>` folders, or only those of these, the ones with most compute a run first.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    folders = sorted(file.parent for file in root.glob(f"*/*/{EXPERIMENT}"))
    found = {folder: read(folder) for folder in folders if only is None or folder in only}
    return dict(sorted(found.items(), key=lambda report: -_compute(report[1])))


def _compute(analysis: Analysis) -> float:
    """The most FLOPs that a run of a study was trained with."""
    records = [run.record for run in analysis.study.runs]
    return max((record.train_flops_per_token * record.training.tokens for record in records), default=0.0)


def sentences(found: dict[Path, Analysis]) -> list[Sentence]:
    """A line for each sentence that an experiment of the package tests, in the order of the experiments.

    It is that of the first report in which a score of it was run.
    """
    lines = []
    for known in filter(lambda known: known.is_of_paper, map(experiments.named, (f.stem for f in experiments.files()))):
        of_it = {folder: analysis for folder, analysis in found.items() if folder.name == known.name}
        for quote in dict.fromkeys(claim.quote for claim in known.claims):
            said = next(_said(quote, of_it), None)
            lines.append(said or Sentence(quote, known.source, CANNOT_TELL, None, 0, None))
    return lines


def _said(quote: str, found: dict[Path, Analysis]) -> Iterator[Sentence]:
    for folder, analysis in found.items():
        table: Any = analysis.verdicts
        tests = table[(table["quote"] == quote) & (table["compared"] != "")]
        if len(tests):
            verdict = outcome(set(tests["verdict"]))
            decided = tests[tests["verdict"] != CANNOT_TELL]
            same = tests[tests["verdict"] == verdict] if verdict != MIXED else decided
            source = analysis.experiment.source
            yield Sentence(quote, source, verdict, same.iloc[0], max(len(decided), 1), (folder, analysis))
