"""Runs that start from another run: of the same study, or an existing one; and what a start has to keep."""

from collections.abc import Collection
from operator import attrgetter

from albert_lab.config.compose import validate
from albert_lab.config.schema import Keep, RunConfig
from albert_lab.config.section import complete
from albert_lab.data.files import fingerprint
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape, check_deepening
from albert_lab.runs import run as runs

# Keys that continued training must keep: they set the shape, the token ids, the labels, the schedule, the curve.
_SAME_IN_TRAINING = (
    *("model", "sharing", "embedding_size", "inter_sentence", "tokenizer", "optimizer", "budget.unit", "budget.value"),
    *("projection", "attention_block", "ffn_block", "position_encoding", "norm_placement"),
    *("batch_size", "length_schedule", "max_sequence_length", "evaluation", "seed"),
)
# Groups and plain keys that the weights of an existing run determine.
_DECIDED = ("model", "sharing", "embedding_size", "projection", "tokenizer")
# Keys that keep the values of an existing run unless given.
_KEPT = ("inter_sentence", "dropout", "corpus.lower_case", "corpus.strip_accents", "corpus.language")
# Those of a run with a text: by others, a document that it was trained on would be held out.
_SPLIT = ("corpus.dev_share", "corpus.split_seed")


def check_start(run: runs.Run, parent: runs.Run, keep: Keep) -> None:
    """Check that a run can start from another one, of which its training or only its weights are kept.

    Raises:
        ConfigError: they do not fit; names what differs.
    """
    is_same = run.fingerprints["tokenizer"] == parent.fingerprints["tokenizer"]
    if not is_same and find_tokenizer(run.config) != find_tokenizer(runs.with_tokenizer(parent.config, parent)):
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
    content, there, given = config.model_dump(mode="json"), complete(parent.config), {*overridden, *fixed}
    asked, text = content["inter_sentence"], parent.fingerprints.get("corpus")
    content |= {key: there[key] for key in _DECIDED}
    documents = ("corpus.source_documents",) if text == fingerprint(config.corpus) else ()
    for key in {*_KEPT, *(_SPLIT if text else ()), *documents} - given:
        section, _, last = key.rpartition(".")
        (content[section] if section else content)[last] = (there[section] if section else there)[last]
    content["inter_sentence"] |= {key: value for key, value in asked.items() if f"inter_sentence.{key}" in given}
    adopted = runs.with_tokenizer(validate(content), parent)
    if adopted.tokenizer.model_file != parent.config.tokenizer.model_file:
        file = {"name": "model-file", "training_sentences": None, "character_coverage": None}
        adopted = adopted.model_copy(update={"tokenizer": adopted.tokenizer.model_copy(update=file)})
    return adopted
