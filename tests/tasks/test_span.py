import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from toy_tasks import (
    loss_of,
    scores_of,
    span_examples,
    toy_config,
    toy_kind,
    toy_start,
    toy_tokenizer,
)

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.batches import TaskBatch
from albert_lab.tasks.examples import Answer, SpanExample
from albert_lab.tasks.heads import NO_SPAN, SpanOrNothingHead
from albert_lab.tasks.model import build_model
from albert_lab.tasks.span import windows

TOKENIZER = toy_tokenizer()
CPU = torch.device("cpu")
CONTEXT = "The cat sat on a mat. " * 6 + "The DOG ran to his house. " + "It was red. " * 6


def asked(*texts, id="q"):
    answers = tuple(Answer(text, CONTEXT.index(text)) for text in texts)
    return SpanExample(id, "who ran", CONTEXT, answers, not answers)


@given(st.integers(1, 120), st.integers(1, 40), st.integers(1, 50))
def test_a_token_is_assigned_to_the_window_with_most_context_as_in_the_release(
    num_tokens, size, stride
):
    result = windows(num_tokens, size, stride)

    def around(window, token):
        return min(token - window[0], window[1] - 1 - token) + 0.01 * (window[1] - window[0])

    for token in range(num_tokens):
        showing = [window for window in result if window[0] <= token < window[1]]
        (chosen,) = [window for window in result if window[2] <= token < window[3]]
        assert chosen == max(showing, key=lambda window: around(window, token))


def test_every_window_has_its_part_of_the_context_and_the_position_of_the_answer():
    kind = toy_kind("squad1")
    features = kind.make_features([asked("DOG")], TOKENIZER, training=True)
    (context,) = features.contexts
    answer = context.tokens_of(CONTEXT.index("DOG"), CONTEXT.index("DOG") + 3)
    assert answer is not None
    targets = features.targets
    assert len(features.rows) > 2
    for row, (ids, _) in enumerate(features.rows):
        first, end, start, last = (
            targets[name][row] for name in ("context_first", "context_end", "start", "end")
        )
        shift = targets["shift"][row]
        assert len(ids) <= kind.settings.max_sequence_length
        assert ids[first:end] == context.ids[first + shift : end + shift]
        is_held = first + shift <= answer[0] and answer[1] < end + shift
        assert (start != NO_SPAN) == is_held == (targets["is_impossible"][row] == 0)
        if is_held:
            assert (start + shift, last + shift) == answer


def test_the_settings_limit_the_training_windows_without_the_answer():
    kind = toy_kind("squad1", empty_windows=0.01)
    examples = [asked("DOG", id=str(number)) for number in range(20)]
    thinned = kind.make_features(examples, TOKENIZER, training=True)
    whole = kind.make_features(examples, TOKENIZER, training=False)
    assert whole.cut == 0
    kept, empty = (part.targets["is_impossible"] for part in (thinned, whole))
    assert len(kept) - kept.sum() == len(empty) - empty.sum()
    assert kept.sum() < empty.sum() / 4


@pytest.mark.parametrize("name", ["squad1", "squad2"])
def test_the_loss_and_the_spans_do_not_depend_on_padding(tmp_path, name):
    kind = toy_kind(name)
    examples = [
        SpanExample("s", "who ran", "the cat ran", (Answer("cat", 4),), False),
        asked("DOG"),
    ]
    features = kind.make_features(examples, TOKENIZER, training=True)
    model = build_model(toy_start(tmp_path), kind, 0).eval()
    items = np.argsort(features.lengths, kind="stable")[[0, -1]]
    assert len(set(features.lengths[items])) == 2
    together = features.batch(items, CPU)
    apart = [features.batch(items[[place]], CPU) for place in (0, 1)]
    losses = [loss_of(model, batch).item() for batch in apart]
    assert loss_of(model, together).item() == pytest.approx(sum(losses) / 2, rel=1e-5)
    alone = scores_of(model, apart[0])["score"][0]
    count = int(torch.isfinite(alone).sum())
    assert count
    beside_other = scores_of(model, together)["score"][0]
    torch.testing.assert_close(beside_other[:count], alone[:count], rtol=1e-4, atol=0)


def test_the_end_logits_given_a_start_equal_those_of_one_layer_on_both(tmp_path):
    kind = toy_kind("squad2")
    shape = EncoderShape.from_config(toy_config())
    head = SpanOrNothingHead(shape, kind.settings)
    torch.manual_seed(0)
    hidden = torch.randn(2, 9, shape.hidden_size)
    all_tokens = torch.ones(2, 9, dtype=torch.int64)
    context = {"context_first": torch.tensor([0, 0]), "context_end": torch.tensor([9, 9])}
    batch = TaskBatch(all_tokens, all_tokens, all_tokens.bool(), context, is_masked=True)
    starts = torch.tensor([[1, 4], [2, 8]])
    logits = head.end_logits(hidden, starts, batch)
    weight = torch.cat([head.end_of_token.weight, head.end_of_start.weight], dim=1)
    at_start = hidden[torch.arange(2)[:, None], starts]
    # [rows, starts, sequence, token and start]
    both = torch.cat(torch.broadcast_tensors(hidden[:, None], at_start[:, :, None]), dim=-1)
    joined = F.linear(both, weight, head.end_of_token.bias)
    expected = head.end(head.end_layer_norm(torch.tanh(joined)))[..., 0]
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("name", ["squad1", "squad2"])
def test_answers_are_substrings_of_the_context_up_to_the_maximal_length(tmp_path, name):
    kind = toy_kind(name, answer_length=3)
    examples = span_examples(kind.task)
    features = kind.make_features(examples, TOKENIZER, training=False)
    model = build_model(toy_start(tmp_path), kind, 0).eval()
    result = scores_of(model, features.batch(np.arange(len(features.rows)), CPU))
    lengths = result["end"] - result["start"] + 1
    assert (lengths[torch.isfinite(result["score"])] <= 3).all()
    outputs = {key: value.detach().numpy() for key, value in result.items()}
    for answer, example in zip(kind.predict(examples, features, outputs)[0], examples, strict=True):
        assert answer
        assert answer in example.context


def test_the_answer_is_the_best_span_of_all_windows_and_of_equal_ones_the_first():
    kind = toy_kind("squad2")
    examples = [asked("DOG")]
    features = kind.make_features(examples, TOKENIZER, training=False)
    assert len(features.rows) > 2
    (context,) = features.contexts
    starts = features.targets["context_first"]
    scores = np.full((len(starts), 2), -math.inf, dtype=np.float32)
    scores[0], scores[1] = (-3.0, -2.0), (-2.0, -math.inf)
    spans = np.column_stack([starts, starts + 1])
    no_answer = np.arange(len(starts), dtype=np.float32)
    outputs = {"score": scores, "start": spans, "end": spans, "no_answer": no_answer}
    (answer,), na_probs = kind.predict(examples, features, outputs)
    assert answer == CONTEXT[context.starts[1] : context.ends[1]]
    assert na_probs == [0.5], "the lowest logit"
    nowhere = outputs | {"score": np.full_like(scores, -math.inf)}
    assert kind.predict(examples, features, nowhere)[0] == [""]


def test_the_threshold_with_the_best_f1_is_applied():
    kind = toy_kind("squad2")
    examples = [
        SpanExample("a", "who", "the cat", (Answer("cat", 4),), False),
        SpanExample("b", "who", "the cat", (), True),
    ]
    na_probs = [1 / (1 + math.exp(2)), 1 / (1 + math.exp(-3))]
    outcome = kind.score(examples, ["cat", "cat"], na_probs)
    assert outcome.values["f1"] == 100
    assert outcome.threshold == pytest.approx(1 / (1 + math.exp(2)))
