"""The texts that a run and those it starts from were trained on, and what of them a later evaluation would score."""

from collections.abc import Sequence
from dataclasses import dataclass

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.errors import ConfigError
from albert_lab.runs.run import IMPORT, RUN_FILE, Run, read


@dataclass(frozen=True)
class TrainingText:
    """A text that a run was trained on: all of it if it was added to its corpus, else what it did not hold out."""

    run: str
    corpus: CorpusConfig
    fingerprint: str
    is_added: bool = False

    def is_of(self, corpus: CorpusConfig, fingerprint: str) -> bool:
        """Whether it is the text of a corpus: by what it says, as a path can be written in several ways, or by name."""
        names = [(named.source, named.path, named.datasets) for named in (corpus, self.corpus)]
        return self.fingerprint == fingerprint or names[0] == names[1]

    def overlap(self, corpus: CorpusConfig, fingerprint: str) -> str | None:
        """A sentence on documents of this text that are held out of a corpus; None if there are none."""
        if self.is_added and self.fingerprint == fingerprint:
            return f"{self.run} was trained on all of this text (added_corpus)."
        if self.is_added or not self.is_of(corpus, fingerprint):
            return None
        for key in ("dev_share", "source_documents"):
            here, before = getattr(corpus, key), getattr(self.corpus, key)
            if here > before if key == "dev_share" else here != before:
                return (
                    f"{self.run} held out other documents of this text (corpus.{key}={before}, here {here}): it was"
                    " trained on some of those that are scored."
                )
        return None


def is_known(run: Run) -> bool:
    """Whether the texts are known: not of an imported model, whose configuration has the text of the import."""
    return not (run.folder / IMPORT).exists()


def texts_of(run: Run) -> list[TrainingText]:
    """The texts that a run itself was trained on, as far as they are known."""
    if not is_known(run):
        return []
    texts = [TrainingText(run.name, run.config.corpus, run.fingerprints["corpus"])]
    if added := run.fingerprints.get("added_corpus"):
        texts.append(TrainingText(run.name, run.config.corpus, added, is_added=True))
    return texts


def texts_of_line(run: Run) -> tuple[list[TrainingText], str | None]:
    """The texts that a run and those it starts from were trained on, and the first run whose texts are not known."""
    texts = texts_of(run)
    while run.start_from is not None:
        folder = paths.runs() / run.start_from.run
        try:
            if not (folder / RUN_FILE).is_file():
                return texts, folder.name
            run = read(folder)
        except ConfigError:
            return texts, folder.name
        if not is_known(run):
            return texts, folder.name
        texts += texts_of(run)
    return texts, None


def overlaps(texts: Sequence[TrainingText], corpus: CorpusConfig, fingerprint: str) -> list[str]:
    """The sentences of TrainingText.overlap() on several texts, each once."""
    return list(dict.fromkeys(filter(None, (text.overlap(corpus, fingerprint) for text in texts))))
