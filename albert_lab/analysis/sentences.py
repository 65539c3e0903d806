"""The claims of the paper over all reports below a folder: each at the largest scale that can tell
it.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from albert_lab.analysis.analysis import Analysis, read
from albert_lab.analysis.verdict import Outcome, Verdict
from albert_lab.analysis.verdicts import kinds
from albert_lab.studies import experiment as experiments
from albert_lab.studies.claims import BaseClaim, Kind
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import EXPERIMENT


@dataclass(frozen=True)
class Found:
    """A verdict on a claim in the report of a folder; elsewhere are the others that differ from
    it.
    """

    folder: Path
    analysis: Analysis
    verdict: Verdict
    elsewhere: tuple["Found", ...] = ()


@dataclass(frozen=True)
class Sentence:
    """A claim, the experiment that asks it, by which kinds of evidence, and the verdict that speaks
    for it by each.

    A kind by which no report asks it is not in `by`.
    """

    claim: BaseClaim
    experiment: Experiment
    kinds: Sequence[Kind]
    by: Mapping[Kind, Found]

    @property
    def where(self) -> str:
        """The tables and figures that the claim is about; else its whole source."""
        source = self.experiment.source
        return ", ".join(re.findall(r"(?:Table|Figure)s? [\d\w]+(?: and \d+)?", source)) or source


def reports(root: Path, only: Container[Path] | None = None) -> dict[Path, Analysis]:
    """The reports in `<root>/<scale>-<corpus>/<name>` folders, or only those of these, the ones
    with most compute a run first.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    folders = sorted(file.parent for file in root.glob(f"*/*/{EXPERIMENT}"))
    found = {folder: read(folder) for folder in folders if only is None or folder in only}
    # Sorting keeps the order of folders with as much compute.
    return dict(sorted(found.items(), key=lambda report: -_most_flops(report[1])))


def _most_flops(analysis: Analysis) -> float:
    """The most FLOPs that one run of a study was trained with, by which reports are sorted; 0
    without runs.
    """
    flops = [record.train_flops_per_token * record.training.tokens for record in analysis.records]
    return max(flops, default=0.0)


def sentences(found: Mapping[Path, Analysis]) -> list[Sentence]:
    """A line for each claim that an experiment of the package tests, by the numbers of the paper's
    tables, then of its figures.

    Its verdicts are those of reports that ask the same, whatever their name, of models trained from
    scratch.
    """
    from_scratch = {
        folder: analysis for folder, analysis in found.items() if not analysis.study.is_of_encoder
    }
    lines = []
    for known in map(experiments.named, (file.stem for file in experiments.files())):
        if known.is_of_paper:
            lines += [_sentence(claim, known, from_scratch) for claim in known.claims]
    return sorted(lines, key=_place)


def _place(line: Sentence) -> tuple[bool, int]:
    numbers = re.findall(r"\d+", line.where)
    return line.where.startswith("Figure"), int(numbers[0])


def of_encoders(found: Mapping[Path, Analysis]) -> list[Sentence]:
    """A line for each claim of the reports that start from a trained encoder.

    They ask another question than the paper, and are never a verdict of sentences().
    """
    lines = []
    for folder, analysis in found.items():
        if analysis.study.is_of_encoder:
            experiment = analysis.experiment
            lines += [
                _sentence(claim, experiment, {folder: analysis}) for claim in experiment.claims
            ]
    return lines


def _sentence(claim: BaseClaim, experiment: Experiment, found: Mapping[Path, Analysis]) -> Sentence:
    asked: dict[Kind, list[Found]] = {}
    for folder, analysis in found.items():
        for verdict in analysis.verdicts:
            is_named = claim.short and claim.short == verdict.claim.short
            if verdict.claim == claim or (is_named and verdict.claim.quote == claim.quote):
                asked.setdefault(verdict.kind, []).append(Found(folder, analysis, verdict))
    by = {kind: _speaking(items) for kind, items in asked.items()}
    return Sentence(claim, experiment, list(by) or kinds(claim), by)


def _speaking(by_size: Sequence[Found]) -> Found:
    """The verdict that speaks for a claim: that of the largest scale that can tell; else of the
    largest that has it.
    """
    untold = (Outcome.CANNOT_TELL, Outcome.NOT_RUN)
    telling = [item for item in by_size if item.verdict.outcome not in untold]
    measured = [item for item in by_size if item.verdict.effect]
    chosen = (telling or measured or by_size)[0]
    differ = [item for item in measured if item.verdict.outcome is not chosen.verdict.outcome]
    return replace(chosen, elsewhere=tuple(differ))
