"""Runs that start from another run: of the same study, or an existing one; and what a start has to keep."""

from collections.abc import Collection
from operator import attrgetter

from albert_lab.config.compose import validate
from albert_lab.config.schema import Keep, RunConfig
from albert_lab.config.section import complete
from albert_lab.data.files import fingerprint
from albert_lab.data.vocabulary import find_tokenizer, tokenizer_fingerprint
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape, check_deepening
from albert_lab.runs import run as runs

# Keys that continued training must keep: they set the shape, the token ids, the labels, the schedule, the curve.
_SAME_IN_TRAINING = (
    *("model", "sharing", "embedding_size", "inter_sentence", "tokenizer", "optimizer", "budget.unit", "budget.value"),
    *("batch_size", "length_schedule", "max_sequence_length", "evaluation", "seed"),
)
# Groups and plain keys that the weights of an existing run determine.
_DECIDED = ("model", "sharing", "embedding_size", "projection", "tokenizer")
# Keys that keep the values of an existing run unless given.
_KEPT = ("inter_sentence", "dropout", "corpus.lower_case", "corpus.strip_accents")
# Those that it keeps on the same text: by others, a document that it was trained on would be held out.
_SPLIT = ("corpus.dev_share", "corpus.split_seed", "corpus.source_documents")


def check_start(run: runs.Run, parent: runs.Run, keep: Keep) -> None:
    """Check that a run can start from another one, of which its training or only its weights are kept.

    Raises:
        ConfigError: they do not fit; names what differs.
    """
    is_same_file = find_tokenizer(run.config) == find_tokenizer(parent.config)
    if run.fingerprints["tokenizer"] != parent.fingerprints["tokenizer"] and not is_same_file:
        raise ConfigError("the weights are those of another tokenizer")
    if keep == "weights":
        labels, before = (len(each.config.inter_sentence.labels) for each in (run, parent))
        if before and labels and before != labels:  # a head that one side lacks is new, or left behind
            raise ConfigError(f"its pair head has {labels} labels, and that of the weights {before}")
        check_deepening(*(EncoderShape.from_config(config.config) for config in (parent, run)))
        return
    for key in _SAME_IN_TRAINING:
        here, there = (attrgetter(key)(config) for config in (run.config, parent.config))
        if here != there:
            raise ConfigError(f"it continues that training, so {key} must be the same: {there} before, {here} after")
    here, there = (config.budget.stop_at for config in (run.config, parent.config))
    if there >= here:
        raise ConfigError(f"budget.stop_at={there:g} there leaves nothing to do until budget.stop_at={here:g} here")


def adopt(config: RunConfig, parent: runs.Run, overridden: Collection[str], fixed: Collection[str]) -> RunConfig:
    """A configuration with what the weights of an existing run determine, and what is kept of it unless given.

    Args:
        overridden: keys that the command or the row gives; fixed: those of the experiment.

    Raises:
        ConfigError: an overridden key is determined by the weights.
    """
    for key in overridden:
        if key.split(".")[0] in _DECIDED:
            raise ConfigError(f"{key} cannot be set: the weights of {parent.name} determine it")
    content, there = config.model_dump(mode="json"), complete(parent.config)
    content |= {key: there[key] for key in _DECIDED}
    has_same_text = parent.fingerprints.get("corpus") == fingerprint(config.corpus)
    for key in (*_KEPT, *(_SPLIT if has_same_text and not (parent.folder / runs.IMPORT).exists() else ())):
        section, _, last = key.rpartition(".")
        if key not in (*overridden, *fixed):
            (content[section] if section else content)[last] = (there[section] if section else there)[last]
    adopted, tokenizer = validate(content), parent.fingerprints["tokenizer"]
    if parent.config.tokenizer.model_file is None and tokenizer_fingerprint(adopted) != tokenizer:  # of other text
        file = {"name": "model-file", "model_file": str(find_tokenizer(parent.config))}
        file |= {"training_sentences": None, "character_coverage": None}
        adopted = adopted.model_copy(update={"tokenizer": parent.config.tokenizer.model_copy(update=file)})
    return adopted
