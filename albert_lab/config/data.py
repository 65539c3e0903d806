"""The sections of the data: corpora, tokenizer, segment pairs and masking."""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from albert_lab.config.section import Section, Seed, Share, default
from albert_lab.files import Name

MIN_VOCAB_SIZE = 32
# Far beyond any vocabulary in use; SentencePiece fails without an error near its limit of 2**31.
MAX_VOCAB_SIZE = 2**24
_MAX_MASKED = 2**16  # more tokens than any sequence has; arrays are made of this size


class PairLabel(Section):
    """One label of an inter-sentence objective: a kind of pair (a function in data/pairs.py) and
    its share.
    """

    kind: str
    share: float = Field(gt=0, le=1)


class InterSentenceConfig(Section):
    """The kinds of segment pairs that are made and classified. Without labels: consecutive pairs
    without a loss.

    cutting: whether documents are cut into chunks from both ends, so that lengths do not reveal the
    order, or only from the front, as in the released code.
    random_share: the share of all pairs that get a second segment from a random document, as in the
    released code, in place of as many pairs of the negative label, which they have too.
    """

    name: Name
    labels: tuple[PairLabel, ...]
    single_sentence_chunks: Literal["drop", "other-document"]
    cutting: Literal["balanced", "released"]
    random_share: float = default(0.0)

    @property
    def negative(self) -> int:
        """The label of a segment with random text: the last that is not consecutive, or -1."""
        kinds = [entry.kind for entry in self.labels]
        return max((label for label, kind in enumerate(kinds) if kind != "consecutive"), default=-1)

    @model_validator(mode="after")
    def _labels_fit(self) -> "InterSentenceConfig":
        kinds = {label.kind for label in self.labels}
        total = sum(label.share for label in self.labels)
        is_mix = 1 < len(kinds) == len(self.labels) and "consecutive" in kinds
        if kinds and not (is_mix and math.isclose(total, 1.0, abs_tol=1e-6)):
            raise ValueError(
                "labels must be none, or two or more different kinds, of which one is consecutive, "
                f"whose shares sum to 1 (not to {total:g})"
            )
        most = self.labels[self.negative].share if kinds else 0.0
        if self.random_share and not 0 < self.random_share < most:
            raise ValueError(
                f"random_share is {self.random_share:g} (allowed: 0, and less than {most:g})"
            )
        return self


def _check_path(path: Any) -> Any:
    if not path or "" in [*path]:  # it would be the current folder
        raise ValueError(
            "an empty path, as from a shell variable that is not set: give a file or a folder"
        )
    return path


_Path = Annotated[str, AfterValidator(_check_path)]
_Paths = Annotated[str | tuple[str, ...], AfterValidator(_check_path)]


class _Text(Section):
    """What the corpus and added text have in common: the source of the text, and its split into
    documents.
    """

    section: ClassVar[str]  # its key in a configuration, for messages

    name: Name
    source: Literal["none", "package", "files"]
    path: _Paths | None
    source_documents: Literal["auto", "file", "blank-line"]
    documents: Literal["file", "blank-line", "paragraph"]
    sentences: Literal["split", "line"]
    text_field: str
    datasets: tuple[()] = ()  # in all records, and so in the names of runs

    @model_validator(mode="after")
    def _has_a_path(self) -> Self:
        if self.source != "none" and self.path is None:
            raise ValueError(f"path=null with source={self.source}: give a file or a folder")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of a source that has some."""
        return self.path if isinstance(self.path, tuple) else (str(self.path),)


class CorpusConfig(_Text):
    """The source of the text, its split into documents and sentences, and its cleaning.

    source_documents: units that are held out or trained on as a whole; documents: units of which
    segment pairs are made, the same or smaller. Records and rows of tables are source documents.

    dev_share, split_seed: the share of source documents that is held out, and which of them.
    language: a code of two letters (ISO 639-1) or three; the sentence splitter accepts any text.
    lines: wrapped joins the lines between blank lines, which were broken to fit a width.
    on_error: skip leaves out records without text or with damaged text, and says how many, instead
    of stopping.
    """

    section = "corpus"

    source: Literal["package", "files"]  # pyright: ignore[reportIncompatibleVariableOverride]
    document_tokens: int | None = Field(gt=0)
    language: str = Field(pattern="^[a-z]{2,3}(-[A-Za-z0-9]+)*$")
    lower_case: bool
    strip_accents: bool
    dev_share: float = Field(gt=0, lt=1)
    split_seed: Annotated[int, Seed] = default(0)
    lines: Literal["whole", "wrapped"] = default("whole")
    on_error: Literal["stop", "skip"] = default("stop")

    @field_validator("strip_accents", mode="before")
    @classmethod
    def _english_alone_loses_accents(cls, value: object, info: ValidationInfo) -> object:
        return info.data.get("language", "").split("-")[0] == "en" if value is None else value


class AddedCorpusConfig(_Text):
    """Training text in addition to the corpus, cleaned and split like it; source=none: no added
    text.

    The tokenizer and the held-out documents remain those of the corpus.
    """

    section = "added_corpus"


class AddedText(CorpusConfig):
    """The added text as a corpus of its own, with the cleaning and the split of the main corpus."""

    section = "added_corpus"


class TokenizerConfig(Section):
    """A SentencePiece model: trained on the corpus, or an existing file; or an existing
    tokenizer.json.
    """

    name: Name
    model_file: _Path | None
    digit_commas: Literal["keep"] = "keep"  # in all records, and so in the names of runs
    vocab_size: int = Field(ge=MIN_VOCAB_SIZE, le=MAX_VOCAB_SIZE)
    # SentencePiece samples no fewer sentences, and no smaller share of characters; its arithmetic
    # fails above 2**53.
    training_sentences: int | None = Field(ge=101, le=10**12)
    character_coverage: float | None = Field(ge=0.98, le=1)


class MaskingConfig(Section):
    """n-gram masking. max_predictions counts tokens per sequence; null: no cap.

    method chooses the tokens of training batches; held-out text always has n-gram masking, so that
    runs of different methods are scored on the same sets.
    """

    name: Name
    probability: float = Field(gt=0, lt=1)
    max_predictions: int | None = Field(gt=0, le=_MAX_MASKED)
    max_ngram: int = Field(gt=0, le=_MAX_MASKED)
    mask_share: float = Share
    random_share: float = Share
    method: str = default("n-gram")

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskingConfig":
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(
                f"mask_share + random_share is {self.mask_share + self.random_share:g}, more than 1"
            )
        return self

    def most_predictions(self, length: int) -> int:
        """Tokens that are predicted in a sequence of this length without padding, at most."""
        wanted = max(1, round(self.probability * length))
        return min(wanted, self.max_predictions or wanted)
