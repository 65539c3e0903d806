from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from toy import toy_config

from albert_lab.data.batches import micro_batches
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import find_tokenizer
from albert_lab.errors import ConfigError
from albert_lab.measures import catalog
from albert_lab.measures.catalog import labels, of_kind
from albert_lab.measures.measure import HeldOutPairs, OwnTextMeasure, PairMeasure
from albert_lab.model.encoder import PretrainingModel, PretrainingOutput
from albert_lab.score import Documents, share
from albert_lab.training import evaluate
from albert_lab.training.device import Clock, inputs_of
from albert_lab.training.evaluate import Evaluator, StoppedError, margin

CPU = torch.device("cpu")


def evaluator(config, is_stopped=lambda: False) -> Evaluator:
    shards = prepare(config, lambda line: None)
    tokenizer = load_model(find_tokenizer(config))
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    return Evaluator(config, train, dev, tokenizer, {}, CPU, is_stopped)


@pytest.mark.parametrize(
    ("logits", "kinds", "negative", "chosen"),
    [
        ([2.0, 1.0], ["consecutive", "swapped"], "swapped", False),
        ([0.0, 3.0], ["consecutive", "other-document"], "swapped", True),
        ([2.0, 1.0], ["swapped", "consecutive"], "swapped", True),
        ([1.0, 0.0, 5.0], ["consecutive", "swapped", "other-document"], "swapped", False),
        ([1.0, 0.0, 5.0], ["consecutive", "swapped", "other-document"], "other-document", True),
    ],
)
def test_a_head_chooses_between_consecutive_and_the_kind_of_a_set_or_all_its_others(
    logits, kinds, negative, chosen
):
    assert bool(margin(torch.tensor([logits]), kinds, negative) > 0) is chosen


def test_the_sets_are_the_same_for_every_seed_and_objective(corpus):
    first = evaluator(toy_config(corpus, "seed=1", "inter_sentence=sop"))
    second = evaluator(toy_config(corpus, "seed=2", "inter_sentence=none"))
    held_out = [*map(first.batch, of_kind(HeldOutPairs))]
    again = [*map(second.batch, of_kind(HeldOutPairs))]
    for measure in of_kind(PairMeasure):
        if measure.probe:
            held_out.append(first.probe(measure))
            again.append(second.probe(measure))
    for one, other in zip(held_out, again, strict=True):
        assert np.array_equal(one.input_ids, other.input_ids)
        assert np.array_equal(one.masked_labels, other.masked_labels)
        assert np.array_equal(one.pair_labels, other.pair_labels)


@pytest.mark.parametrize("kinds", ["sop", ""])
def test_every_model_has_every_score_and_along_the_way_those_of_its_own_heads(corpus, kinds):
    config = toy_config(corpus, f"inter_sentence={kinds or 'none'}")
    model, result = PretrainingModel.from_config(config), evaluator(config)
    scores = result.evaluate(model).scores
    assert set(scores) == set(labels())
    by = {name: score.by for name, score in scores.items()}
    assert by["sop_accuracy"] == by["coherence"] == ("head" if kinds else "linear probe")
    assert by["sop_probe"] == by["nsp_probe"] == by["nsp_released_probe"] == "linear probe"
    if not kinds:
        assert scores["sop_probe"] == scores["sop_accuracy"]
    # This model has the random weights of its seed itself.
    assert scores["nsp_by_random_weights"].value == scores["nsp_probe"].value
    without_mlm = result.evaluate(model, ["mlm_head"]).scores
    assert set(without_mlm) == set(labels()) - {"mlm_accuracy"}
    _, counts = np.unique(result.batch(catalog.MLM).masked_labels, return_counts=True)
    assert scores["mlm_accuracy"].floor == pytest.approx(100 * counts.max() / counts.sum())
    along = {measure.name for measure in catalog.measures() if measure.in_curves}
    assert set(result.along_the_way(model, 8)) == (along if kinds else {"mlm_accuracy"})


def test_scores_follow_from_what_is_kept_by_document(corpus):
    config = toy_config(corpus, "evaluation.num_pairs=40")
    model = PretrainingModel.from_config(config)
    rng = np.random.default_rng(0)
    sets = evaluator(config)
    sizes = {measure.name: len(sets.batch(measure)) for measure in of_kind(PairMeasure)}
    sets.floors = {name: (rng.random(size) < 0.6).tolist() for name, size in sizes.items()}
    done = sets.evaluate(model)
    for name, score in done.scores.items():
        kept = done.documents[name]
        assert score.n == sum(kept.n)
        assert score.value == pytest.approx(100 * sum(kept.sum) / score.n)
        assert len(kept.n) <= len(sets.dev.source_offsets) - 1
        assert name not in sizes or score.segments_floor == pytest.approx(
            100 * float(np.mean(sets.floors[name]))
        )
    of_mlm = done.documents["mlm_loss"]
    assert sum(of_mlm.sum) / sum(of_mlm.n) == pytest.approx(
        done.scores["mlm_accuracy"].loss, rel=1e-3
    )


def test_a_measure_on_text_of_its_own_is_scored_with_the_others(corpus, monkeypatch):
    score, documents = share(3, 4, floor=50, by="head"), Documents(n=(4,), sum=(3,))
    monkeypatch.setitem(
        catalog.MEASURES, "own", OwnTextMeasure("own", "Own", take=lambda *_: (score, documents))
    )
    config = toy_config(corpus)
    done = evaluator(config).evaluate(PretrainingModel.from_config(config))
    assert (done.scores["own"], done.documents["own"]) == (score, documents)


@pytest.mark.parametrize(
    "taken",
    [
        (share(3, 4, floor=50, by="head"), None),
        (share(3, 4, floor=50, by="head"), [1, 2]),
        75.0,
        (
            share(3, 4, floor=50, by="head").model_copy(update={"value": float("nan")}),
            Documents(n=(4,), sum=(3,)),
        ),
    ],
)
def test_a_measure_that_returns_no_score_with_its_documents_is_refused_by_name(taken):
    measure = OwnTextMeasure("own", "Own", take=lambda *_: taken)
    unused: Any = None
    with pytest.raises(ConfigError, match="the measure own returns"):
        measure.taken(unused, unused, unused)


def test_inference_is_timed_pass_by_pass_until_its_seconds_are_over(corpus, monkeypatch):
    config = toy_config(
        corpus, "inter_sentence=none", "evaluation.num_pairs=40", "evaluation.batch_size=16"
    )
    ticks = iter(range(10_000))
    monkeypatch.setattr(evaluate, "Clock", partial(Clock, time=lambda: next(ticks)))
    result = evaluator(config)
    batch = result.batch(catalog.MLM)
    speed = result.tokens_per_second(PretrainingModel.from_config(config), 4.0)
    first = next(micro_batches(batch, 16)).num_tokens
    assert speed == (batch.num_tokens + first) / 4, (
        "40 pairs are three passes of a tick each, and the first once more"
    )


def test_a_probe_finds_information_in_the_pooled_output(corpus):
    config = toy_config(corpus, "inter_sentence=none", "evaluation.num_pairs=48")
    sets = evaluator(config)
    told = {}
    for batch in (sets.batch(catalog.SOP), sets.probe(catalog.SOP)):
        told |= {
            ids.tobytes(): float(label)
            for ids, label in zip(batch.input_ids, batch.pair_labels, strict=True)
        }

    class Telling(PretrainingModel):
        def forward(self, input_ids, token_type_ids, attention_mask, masked_positions):
            output = super().forward(input_ids, token_type_ids, attention_mask, masked_positions)
            labels = torch.tensor([told.get(ids.numpy().tobytes(), 0.5) for ids in input_ids])
            return PretrainingOutput(
                output.mlm_logits, None, torch.cat([labels[:, None], output.pooled[:, 1:]], 1)
            )

    assert sets.evaluate(Telling.from_config(config)).scores["sop_probe"].value > 90


def test_a_stop_ends_the_evaluation_before_the_next_forward_pass(corpus):
    config = toy_config(corpus)
    with pytest.raises(StoppedError):
        evaluator(config, is_stopped=lambda: True).evaluate(PretrainingModel.from_config(config))


def test_losses_are_the_cross_entropies_of_the_answers(corpus):
    config = toy_config(corpus, "evaluation.num_pairs=40")
    model = PretrainingModel.from_config(config).eval()
    result = evaluator(config)
    scores = result.evaluate(model).scores
    tokens, pairs = result.batch(catalog.MLM), result.batch(catalog.SOP)
    with torch.inference_mode():
        mlm_logits = model(**inputs_of(tokens, CPU)).mlm_logits
        pair_logits = model(**inputs_of(pairs, CPU)).pair_logits
    labels = torch.from_numpy(tokens.masked_labels), torch.from_numpy(pairs.pair_labels)
    assert scores["mlm_accuracy"].loss == pytest.approx(
        float(F.cross_entropy(mlm_logits, labels[0])), rel=1e-5
    )
    assert scores["sop_accuracy"].loss == pytest.approx(
        float(F.cross_entropy(pair_logits, labels[1])), rel=1e-5
    )
