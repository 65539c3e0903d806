from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from toy import toy_config

from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer.cache import find_tokenizer
from albert_lab.data.tokenizer.cache import load as load_model
from albert_lab.model.heads import PretrainingModel, PretrainingOutput
from albert_lab.training import evaluate
from albert_lab.training.device import autocast
from albert_lab.training.evaluate import Evaluator, StoppedError, make_sets, margin
from albert_lab.training.transfer import inputs_of

CPU = torch.device("cpu")


def sets_of(config):
    shards = prepare(config, lambda line: None)
    tokenizer = load_model(find_tokenizer(config))
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    return make_sets(train, dev, tokenizer, config)


def evaluator(config, kinds, is_stopped=lambda: False) -> Evaluator:
    return Evaluator(sets_of(config), kinds, 16, CPU, autocast("fp32", CPU), is_stopped)


def choice(logits, kinds, negative) -> list[int]:
    return (margin(logits, kinds, negative) > 0).long().tolist()


def test_a_two_way_head_chooses_its_larger_logit_on_every_set():
    logits = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    assert choice(logits, ["consecutive", "swapped"], "swapped") == [0, 1]
    assert choice(logits, ["consecutive", "other-document"], "swapped") == [0, 1]


def test_the_order_of_a_heads_labels_does_not_matter():
    logits = torch.tensor([[2.0, 1.0]])
    assert choice(logits, ["swapped", "consecutive"], "swapped") == [1]


def test_a_three_way_head_chooses_between_the_kinds_in_the_set():
    logits = torch.tensor([[1.0, 0.0, 5.0], [1.0, 2.0, 0.0]])
    kinds = ["consecutive", "swapped", "other-document"]
    assert choice(logits, kinds, "swapped") == [0, 1]
    assert choice(logits, kinds, "other-document") == [1, 0]


def test_the_sets_are_the_same_for_every_seed_and_objective(corpus):
    first = sets_of(toy_config(corpus, "seed=1", "inter_sentence=sop"))
    second = sets_of(toy_config(corpus, "seed=2", "inter_sentence=none"))
    for one, other in [(first.mlm, second.mlm), *((first.pairs[name], second.pairs[name]) for name in first.pairs)]:
        assert np.array_equal(one.input_ids, other.input_ids)
        assert np.array_equal(one.masked_labels, other.masked_labels)
        assert np.array_equal(one.pair_labels, other.pair_labels)
    assert not first.probes
    assert set(second.probes) == set(second.pairs)


def test_pair_sets_are_balanced(corpus):
    for batch in sets_of(toy_config(corpus)).pairs.values():
        assert abs(float(np.mean(batch.pair_labels)) - 0.5) <= 1 / len(batch)


def test_an_untrained_model_is_scored_with_n_and_chance(corpus):
    config = toy_config(corpus)
    model = PretrainingModel.from_config(config)
    scores = evaluator(config, ["consecutive", "swapped"]).scores(model)
    sets = sets_of(config)
    assert scores["sop_accuracy"].n == len(sets.pairs["sop_accuracy"])
    assert scores["mlm_accuracy"].n == len(sets.mlm.masked_labels)
    _, counts = np.unique(sets.mlm.masked_labels, return_counts=True)
    assert scores["mlm_accuracy"].floor == pytest.approx(100 * counts.max() / counts.sum())


def test_an_evaluation_does_not_change_the_model(corpus):
    config = toy_config(corpus)
    model = PretrainingModel.from_config(config).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    evaluator(config, ["consecutive", "swapped"]).scores(model)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("kinds", [["consecutive", "swapped"], []])
def test_forward_passes_are_timed_only_on_the_set_of_masked_language_modelling(corpus, kinds, monkeypatch):
    objective = "sop" if kinds else "none"
    config = toy_config(corpus, f"inter_sentence={objective}", "evaluation.num_pairs=40")
    ticks = iter(range(10_000))
    monkeypatch.setattr(evaluate, "perf_counter", lambda: next(ticks))
    found = evaluator(config, kinds)
    found.scores(PretrainingModel.from_config(config))
    assert found.forwarded.tokens == found.sets.mlm.num_tokens
    assert found.forwarded.seconds == 3, "40 pairs, 16 a pass, each between two ticks"


def test_a_probe_finds_information_in_the_pooled_output(corpus):
    config = toy_config(corpus, "inter_sentence=none", "evaluation.num_pairs=48")
    sets = sets_of(config)
    labels = {}
    for batch in [*sets.pairs.values(), *sets.probes.values()]:
        for ids, label in zip(batch.input_ids, batch.pair_labels, strict=True):
            labels[ids.tobytes()] = float(label)

    class Telling(PretrainingModel):
        def forward(self, input_ids, token_type_ids, attention_mask, masked_positions):
            output = super().forward(input_ids, token_type_ids, attention_mask, masked_positions)
            told = torch.tensor([labels[ids.numpy().tobytes()] for ids in input_ids])
            pooled = torch.cat([told[:, None], output.pooled[:, 1:]], 1)
            return PretrainingOutput(output.mlm_logits, None, pooled)

    model = Telling.from_config(config)
    found = Evaluator(sets, [], 16, CPU, autocast("fp32", CPU), lambda: False)._probe_margins(
        model, sets.probes["sop_accuracy"], sets.pairs["sop_accuracy"]
    )
    assert np.mean((found > 0) == sets.pairs["sop_accuracy"].pair_labels) > 0.9


def test_a_stop_ends_the_evaluation_before_the_next_forward_pass(corpus):
    config = toy_config(corpus)
    with pytest.raises(StoppedError):
        evaluator(config, ["consecutive", "swapped"], is_stopped=lambda: True).scores(
            PretrainingModel.from_config(config)
        )


def test_a_model_with_constant_logits_has_the_losses_of_uniform_chance(corpus):
    config = toy_config(corpus)
    model = PretrainingModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    scores = evaluator(config, ["consecutive", "swapped"]).scores(model)
    assert scores["mlm_accuracy"].loss == pytest.approx(np.log(config.tokenizer.vocab_size))
    assert scores["sop_accuracy"].loss == pytest.approx(np.log(2))


def test_losses_are_the_cross_entropies_of_the_answers(corpus):
    config = toy_config(corpus, "evaluation.num_pairs=40")
    model = PretrainingModel.from_config(config).eval()
    found = evaluator(config, ["consecutive", "swapped"])
    scores, sets = found.scores(model), found.sets
    with torch.inference_mode():
        mlm = model(**inputs_of(sets.mlm, CPU)).mlm_logits
        pair = model(**inputs_of(sets.pairs["sop_accuracy"], CPU)).pair_logits
    labels = torch.from_numpy(sets.mlm.masked_labels), torch.from_numpy(sets.pairs["sop_accuracy"].pair_labels)
    assert scores["mlm_accuracy"].loss == pytest.approx(float(F.cross_entropy(mlm, labels[0])), rel=1e-5)
    assert scores["sop_accuracy"].loss == pytest.approx(float(F.cross_entropy(pair, labels[1])), rel=1e-5)


def test_only_scores_of_complete_sets_have_lexical_floors(corpus):
    config = toy_config(corpus)
    sets = replace(sets_of(config), lexical_floors={"sop_accuracy": 60.0})
    found = Evaluator(sets, ["consecutive", "swapped"], 16, CPU, autocast("fp32", CPU), lambda: False)
    model = PretrainingModel.from_config(config)
    assert found.scores(model)["sop_accuracy"].lexical_floor == 60
    assert found.scores(model)["nsp_accuracy"].lexical_floor is None
    assert found.scores(model, 8)["sop_accuracy"].lexical_floor is None
