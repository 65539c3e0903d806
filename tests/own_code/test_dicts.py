"""A toy of what own code can add to each dict: copy one to begin with."""

import dataclasses
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from toy import toy_config
from toy_shards import make_prose
from toy_tasks import toy_tokenizer

from albert_lab import own_code, paths
from albert_lab.config.compose import load
from albert_lab.config.data import InterSentenceConfig, PairLabel
from albert_lab.data.masking import METHODS
from albert_lab.data.pairs import make_pairs
from albert_lab.errors import ConfigError
from albert_lab.measures import catalog
from albert_lab.measures.measure import OwnTextMeasure, PairMeasure
from albert_lab.model.encoder import Encoder, PretrainingModel
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.records import identity_of
from albert_lab.tasks.task import load_task
from albert_lab.training.optimizer import build_optimizer, set_learning_rate

BLOCK = """
from albert_lab.model.blocks import ATTENTION_BLOCKS, AttentionBlock

class Mean(AttentionBlock):
    def compute(self, hidden_states, attention_mask, positions):
        return self.output(self.value(hidden_states).mean(1, keepdim=True).expand_as(hidden_states))

ATTENTION_BLOCKS["mean"] = Mean
"""
POSITIONS = """
from albert_lab.model.blocks import POSITION_ENCODINGS, PositionEncoding

class Nowhere(PositionEncoding):
    has_table = False

POSITION_ENCODINGS["none"] = Nowhere
"""
OPTIMIZER = """
import torch
from albert_lab.training.optimizer import OPTIMIZERS

OPTIMIZERS["sgd"] = lambda groups, settings, rate: torch.optim.SGD([*groups], rate)
"""
MASKING = """
from albert_lab.data.masking import METHODS, mask

def words(input_ids, attention_mask, can_mask, word_starts, settings, mask_id, rng):
    settings = settings.model_copy(update={"max_ngram": 1})
    return mask(input_ids, attention_mask, can_mask, word_starts, settings, mask_id, rng)

METHODS["words"] = words
"""
PAIRS = """
from dataclasses import replace
from albert_lab.data.pairs import KINDS, PairKind

def shortened(segments, rng, shards):
    kept = segments.take(segments.b_length > 1)  # pairs that cannot be of this kind are left out
    return replace(kept, b_start=kept.b_start + 1, b_length=kept.b_length - 1)

KINDS["shortened"] = PairKind(shortened)
"""
TASK_KIND = """
from albert_lab.tasks.classification import Kind
from albert_lab.tasks.task import KINDS, KindOfTask

KINDS["averaged"] = KindOfTask(__name__, like="classification")
"""
TASK = """
kind: averaged
source: mine
data: {train: train.tsv, dev: dev.tsv}
format: {columns: [text, label], text_a: text, label: label, labels: [bad, good]}
"""


def encoder(*overrides):
    return Encoder(EncoderShape.from_config(load(["scale=smoke", *overrides]))).eval()


def test_an_attention_block_replaces_what_is_computed(own):
    own(BLOCK)
    attention = encoder("attention_block=mean").attention_blocks[0]
    result = attention.compute(torch.randn(2, 8, 48), None, encoder().positions)  # pyright: ignore[reportCallIssue]
    torch.testing.assert_close(result[:, 0], result[:, 5])


def test_a_position_encoding_replaces_the_table(own):
    own(POSITIONS)
    assert encoder("position_encoding=none").embeddings.position_embeddings is None


def test_an_optimizer_has_an_option_with_its_settings_and_steps_at_the_rate_of_the_schedule(
    own, tmp_path
):
    own(OPTIMIZER)
    with pytest.raises(ConfigError, match=r"optimizer/sgd\.yaml"):
        load(["scale=smoke", "optimizer=sgd"])
    (tmp_path / "optimizer").mkdir()
    shutil.copy(paths.CONF / "optimizer" / "adamw.yaml", tmp_path / "optimizer" / "sgd.yaml")
    paths.use_conf([tmp_path])
    config = load(["scale=smoke", "optimizer=sgd"])
    model = PretrainingModel.from_config(config)
    optimizer = build_optimizer(model, config.optimizer, 1.0)
    set_learning_rate(optimizer, 0.25)
    weight = model.pooler.dense.weight
    before = weight.detach().clone()
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), before - 0.25)


def test_a_masking_replaces_that_of_training_batches(own):
    own(MASKING)
    ids, text = np.arange(5, 405).reshape(4, 100), np.ones((4, 100), dtype=bool)
    neighbours = {}
    for name in ("words", "n-gram"):
        masking = load(["scale=smoke", f"masking.method={name}"]).masking
        starts, rng = np.ones(1000, dtype=bool), np.random.default_rng(0)
        _, positions, _ = METHODS[name](ids, text, text, starts, masking, 4, rng)
        neighbours[name] = np.mean(np.diff(positions) == 1)
    assert neighbours["words"] < 0.6 * neighbours["n-gram"]


def shortened_pairs():
    labels = tuple(PairLabel(kind=kind, share=0.5) for kind in ("consecutive", "shortened"))
    spec = InterSentenceConfig(
        name="mix", labels=labels, single_sentence_chunks="drop", cutting="balanced"
    )
    return make_pairs(make_prose(40), spec, load(["max_sequence_length=64"]), seed=0, epoch=0)


def test_a_kind_of_pair_is_made_in_its_share(own):
    with pytest.raises(ConfigError, match="kind=shortened"):
        shortened_pairs()
    own(PAIRS)
    pairs = shortened_pairs()
    assert np.mean(pairs.label) == pytest.approx(0.5, abs=0.02)
    gap = pairs.b_start - (pairs.a_start + pairs.a_length)
    whole = pairs.a_length + pairs.b_length < 61 - 1  # not truncated
    assert set(gap[whole & (pairs.label == 1)]) == {1}


def test_the_measure_of_the_examples_is_taken_on_halves_of_the_pairs(tmp_path):
    own_code.include(paths.PACKAGE.parent / "examples" / "sop_of_halves.py")
    measures = {measure.name: measure for measure in catalog.of_kind(PairMeasure)}
    shards, config = make_prose(40), toy_config(tmp_path)
    halves, whole = (
        measures[name].pairs(shards, config, 100) for name in ("sop_of_halves", "sop_accuracy")
    )
    np.testing.assert_array_equal(halves.a_length, (whole.a_length + 1) // 2)
    assert catalog.labels()["sop_of_halves"] == "SOP of halves"


def test_blimp_of_the_examples_masks_each_token_by_itself_and_a_pair_of_one_sentence_is_a_tie(
    tmp_path, monkeypatch
):
    pairs = pd.DataFrame(
        [
            ["a", "bad oru.", "bad oru."],
            ["a", "cat dog", "dog"],
            ["b", "bad cat oru.", "cat bad oru."],
        ],
        columns=["uid", "good", "bad"],
    )
    pairs.to_json(tmp_path / "pairs.jsonl", orient="records", lines=True)
    example = paths.PACKAGE.parent / "examples" / "blimp.py"
    with pytest.raises(ConfigError, match="ALBERT_LAB_BLIMP"):
        own_code.include(example)
    monkeypatch.setattr(own_code, "_included", {})
    monkeypatch.setenv("ALBERT_LAB_BLIMP", str(tmp_path / "pairs.jsonl"))
    own_code.include(example)
    (measure,) = catalog.of_kind(OwnTextMeasure)
    tokenizer, config = toy_tokenizer(), load(["scale=smoke", "tokenizer.vocab_size=150"])
    model = PretrainingModel.from_config(config).eval()

    @torch.inference_mode()
    def likelihood(text):
        ids = torch.tensor([[tokenizer.cls_id, *tokenizer.encode([text])[0], tokenizer.sep_id]])
        total = 0.0
        for place in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_id
            read = model(masked, torch.zeros_like(ids), None, torch.tensor([place]))
            total += float(read.mlm_logits.log_softmax(-1)[0, ids[0, place]])
        return total

    score, paradigms = measure.take(model, tokenizer, torch.device("cpu"))
    likelier = pairs.good.map(likelihood) > pairs.bad.map(likelihood)
    assert (paradigms.n, paradigms.sum) == ((2, 1), (0.5 + likelier[1], likelier[2]))
    assert (score.n, score.value) == (3, pytest.approx(100 * sum(paradigms.sum) / 3))


def test_a_kind_of_task_has_the_settings_of_another_and_its_code_names_a_fine_tuning(own, tmp_path):
    (tmp_path / "mine.yaml").write_text(TASK)
    with pytest.raises(ConfigError, match="kind=averaged"):
        load_task(str(tmp_path / "mine.yaml"))
    own(TASK_KIND)
    mine = load_task(str(tmp_path / "mine.yaml"))
    assert mine.format.name == "glue"
    assert type(load_kind(mine, mine.at("smoke"))).__name__ == "Kind"
    before = identity_of("run", load(["scale=smoke"]), mine, 0)
    own(TASK_KIND + "# changed\n", "other.py")
    assert identity_of("run", load(["scale=smoke"]), mine, 0) != before


def test_a_shape_with_own_parts_is_in_no_layout_of_transformers(own):
    own(BLOCK)
    shape = EncoderShape.from_config(load(["scale=smoke", "attention_block=mean"]))
    assert shape.other_parts == ["attention_block=mean"]
    assert not dataclasses.replace(shape, attention_block="standard").other_parts
