"""Runs that start from another run: of the same study, or an existing one; and what a start has to
keep.
"""

from collections.abc import Collection
from operator import attrgetter
from typing import Any

from albert_lab.config.compose import Value, validate
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.config.section import complete
from albert_lab.data.files import fingerprint
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape, changes
from albert_lab.runs import run as runs

# Keys that continued training must keep: they set the shape, the token ids, the labels, the
# schedule, the curve.
_SAME_IN_TRAINING = (
    "model",
    "sharing",
    "embedding_size",
    "inter_sentence",
    "tokenizer",
    "optimizer",
    "budget.unit",
    "budget.value",
    "projection",
    "attention_block",
    "ffn_block",
    "position_encoding",
    "layer_scales",
    "batch_size",
    "length_schedule",
    "max_sequence_length",
    "evaluation",
    "seed",
)
_PAPER_HIDDEN_SIZE = 768
_PAPER_EMBEDDING_SIZES = (64, 128, 256)  # Table 3
# Groups and plain keys that the weights of an existing run determine.
_DECIDED = ("model", "sharing", "embedding_size", "projection", "tokenizer")
# Those to which they can be converted (model/conversion.py).
_CONVERTIBLE = (
    "sharing",
    "embedding_size",
    "projection",
    "model.num_layers",
    "model.max_position_embeddings",
)
# Keys that keep the values of an existing run unless given.
_KEPT = (
    "inter_sentence",
    "dropout",
    "corpus.lower_case",
    "corpus.strip_accents",
    "corpus.language",
)
# Those of a run with a text: by others, a document that it was trained on would be held out.
_SPLIT = ("corpus.dev_share", "corpus.split_seed")


def check_start(run: runs.Run, parent: runs.Run, keep: Keep) -> None:
    """Check that a run can start from another one, of which its training or only its weights are
    kept.

    Raises:
        ConfigError: they do not fit; names what differs.
    """
    is_same = run.fingerprints["tokenizer"] == parent.fingerprints["tokenizer"]
    if not is_same and find_tokenizer(run.config) != find_tokenizer(
        runs.with_tokenizer(parent.config, parent)
    ):
        raise ConfigError("the weights are those of another tokenizer")
    if keep == "weights":
        before = len(parent.config.inter_sentence.labels)
        labels = len(run.config.inter_sentence.labels)
        # a head that one side lacks is new, or left behind
        if before and labels and before != labels:
            raise ConfigError(
                f"its pair head has {labels} labels, and that of the weights {before}"
            )
        changes(EncoderShape.from_config(parent.config), EncoderShape.from_config(run.config))
        return
    for key in _SAME_IN_TRAINING:
        before = attrgetter(key)(parent.config)
        after = attrgetter(key)(run.config)
        if before != after:
            raise ConfigError(
                f"it continues that training, so {key} must be the same: {before} before, {after} "
                "after"
            )
    stopped_at = parent.config.budget.stop_at
    stop_at = run.config.budget.stop_at
    if stopped_at >= stop_at:
        raise ConfigError(
            f"budget.stop_at={stopped_at:g} there leaves nothing to do until "
            f"budget.stop_at={stop_at:g} here"
        )


def sizes_of(encoder: RunConfig) -> dict[str, Value]:
    """The sizes of an encoder as settings model.KEY. Settings that are given in terms of them, such
    as ${model.num_layers}, are then in proportion to the encoder and not to the scale's model.
    """
    return {
        f"model.{key}": size for key, size in encoder.model.model_dump(exclude={"name"}).items()
    }


def scale_for(encoder: RunConfig, scale: ScaleConfig) -> ScaleConfig:
    """A scale in which the embedding sizes of the paper have the same proportion to H as the
    paper's.
    """
    hidden_size = encoder.model.hidden_size
    sizes = {
        str(size): size * hidden_size // _PAPER_HIDDEN_SIZE or 1 for size in _PAPER_EMBEDDING_SIZES
    }
    return scale.model_copy(update={"roles": scale.roles | {"embedding_size": sizes}})


def is_convertible(key: str) -> bool:
    """Whether weights can be converted to another value of a key."""
    return key.startswith(_CONVERTIBLE)


def adopt(
    config: RunConfig, parent: runs.Run, overridden: Collection[str], fixed: Collection[str]
) -> RunConfig:
    """A configuration with what the weights of an existing run determine, and what is kept of it
    unless given.

    Args:
        config: with the sizes of the run's encoder (sizes_of) where they are not given.
        overridden: keys that the command or the row gives; fixed: those of the experiment.

    Raises:
        ConfigError: an overridden key is determined by the weights.
    """
    for key in overridden:
        if key.split(".")[0] in _DECIDED and not is_convertible(key):
            raise ConfigError(
                f"{key} cannot be set: the weights of {parent.name} determine it; they can be "
                "converted to another embedding_size, sharing or model.num_layers, and to a larger "
                "model.max_position_embeddings"
            )
    text = parent.fingerprints.get("corpus")
    kept = {*_KEPT, *(_SPLIT if text else ())}
    if text == fingerprint(config.corpus):
        kept.add("corpus.source_documents")
    content = config.model_dump(mode="json")
    inherited = complete(parent.config)
    _take(content, inherited, kept, {*overridden, *fixed})
    _take(content, inherited, {*_DECIDED}, overridden)
    _fit_sharing(content, inherited, overridden)
    hidden_size = content["model"]["hidden_size"]
    has_none = content["embedding_size"] == hidden_size != inherited["embedding_size"]
    if has_none and "projection" not in overridden:
        # equal sizes have no projection by default, but the weights do
        content["projection"] = "always"
    adopted = runs.with_tokenizer(validate(content), parent)
    if adopted.tokenizer.model_file != parent.config.tokenizer.model_file:
        file = {"name": "model-file", "training_sentences": None, "character_coverage": None}
        adopted = adopted.model_copy(
            update={"tokenizer": adopted.tokenizer.model_copy(update=file)}
        )
    return adopted


def _take(
    content: dict[str, Any], inherited: dict[str, Any], keys: set[str], given: Collection[str]
) -> None:
    """Replace these keys of a configuration, and all keys of these sections, by those of another
    one, but for those that are given.
    """
    for key in keys.difference(given):
        section, _, one_name = key.partition(".")
        if not isinstance(inherited[section], dict):
            content[section] = inherited[section]
            continue
        for name in [one_name] if one_name else inherited[section]:
            if f"{section}.{name}" not in given:
                content[section][name] = inherited[section][name]


def _fit_sharing(
    content: dict[str, Any], inherited: dict[str, Any], given: Collection[str]
) -> None:
    """Set how weights are converted to another sharing that is given; one that is not given has a
    block for each layer at the new depth, too, if it had that at the old one.
    """
    sharing = content["sharing"]
    is_given = any(key.partition(".")[0] == "sharing" for key in given)
    if is_given and sharing != inherited["sharing"] and "conversion.sharing" not in given:
        # By the rule of examples/trained-groups.yaml, fixed before its runs.
        content.setdefault("conversion", {})["sharing"] = "stepwise"
    for name in ("attention_groups", "ffn_groups"):
        is_taken = not {"sharing", f"sharing.{name}"} & {*given}
        has_block_for_each = sharing[name] == inherited["model"]["num_layers"]
        if is_taken and has_block_for_each and sharing["name"] != "all-shared":
            sharing[name] = content["model"]["num_layers"]
