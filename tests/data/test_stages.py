import itertools

import numpy as np
import pytest
from test_batches import VOCAB, VOCABULARY, configure, same
from toy_shards import make_prose

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch, StagedBatches
from albert_lab.errors import ConfigError

# Lengths 8, 16 and 32 in steps 0 to 3, 4 to 9, and 10 to 19.
STAGES = "length_schedule.stages=[{share: 0.2, fraction: 0.25}, {share: 0.3, fraction: 0.5}]"
STAGED = (STAGES, "budget.value=20")


@pytest.fixture(scope="module")
def shards():
    return make_prose(30, sentences=20, tokens=8, vocab_size=VOCAB)


def read(
    batches: StagedBatches, config: RunConfig, first: int, end: int, tokens: int = 0
) -> list[Batch]:
    """The batches of these steps, as the training loop reads them, after so many tokens."""
    in_tokens = config.budget.unit == "tokens"
    used = tokens if in_tokens else first
    results = []
    stream = batches.prefetch(first, lambda: used / config.budget.value)
    for batch in itertools.islice(stream, end - first):
        results.append(batch)
        used += batch.num_tokens if in_tokens else 1
    stream.close()
    return results


@pytest.mark.parametrize("stopped_at", [2, 4, 6, 10, 15])
def test_a_restored_state_continues_with_the_same_batches(shards, stopped_at):
    """The budget is in tokens: the first step of a stage follows from the batches before it, not
    from the settings.
    """
    config = configure(STAGES, "budget=tokens", "budget.value=8000")
    whole = read(StagedBatches(shards, VOCABULARY, config), config, 0, 20)
    assert len({batch.input_ids.shape for batch in whole}) == 3
    first = StagedBatches(shards, VOCABULARY, config)
    before = read(first, config, 0, stopped_at)
    second = StagedBatches(shards, VOCABULARY, config)
    second.load_state_dict(first.state_dict(), stopped_at)
    tokens = sum(batch.num_tokens for batch in before)
    after = read(second, config, stopped_at, 20, tokens)
    assert all(same(one, other) for one, other in zip([*before, *after], whole, strict=True))


def test_what_was_read_of_another_text_before_an_arm_is_counted_as_that_text(shards):
    config = configure("budget.value=20", "length_schedule=constant")
    trunk = StagedBatches(shards, VOCABULARY, config)
    read(trunk, config, 0, 14)
    more = make_prose(90, sentences=20, tokens=8, vocab_size=VOCAB)
    arm = StagedBatches(more, VOCABULARY, config)
    arm.load_state_dict(trunk.state_dict(), 14)
    resumed = StagedBatches(more, VOCABULARY, config)
    read(arm, config, 14, 17)
    resumed.load_state_dict(arm.state_dict(), 17)
    old, new = resumed.stages(20)
    assert [(stage.first_step, stage.steps) for stage in (old, new)] == [(0, 14), (14, 6)]
    assert old.stats["pairs"] == trunk.stages(14)[0].stats["pairs"] < new.stats["pairs"]


def test_stages_of_one_length_do_not_repeat_their_examples(shards):
    stages = "length_schedule.stages=[{share: 0.2, fraction: 0.5}, {share: 0.3, fraction: 0.5}]"
    # of steps, the second stage would begin at a later one
    config = configure(stages, "budget=tokens")
    batches = StagedBatches(shards, VOCABULARY, config)
    first, second = (next(batches.prefetch(0, lambda share=share: share)) for share in (0.0, 0.3))
    assert not np.array_equal(first.input_ids, second.input_ids)


def test_the_data_of_each_stage_say_its_steps_and_the_text_that_short_chunks_drop(shards):
    config = configure(*STAGED)
    batches = StagedBatches(shards, VOCABULARY, config)
    through = read(batches, config, 0, 20)
    shapes = [(64, 8)] * 4 + [(32, 16)] * 6 + [(16, 32)] * 10
    assert [batch.input_ids.shape for batch in through] == shapes
    stages = batches.stages(20)
    assert [(stage.first_step, stage.steps) for stage in stages] == [(0, 4), (4, 6), (10, 10)]
    dropped = [stage.stats["dropped_text_share"] for stage in stages]
    assert dropped[0] > dropped[1] >= dropped[2], (
        "sentences have 8 tokens: most chunks of 5 are single sentences"
    )
    assert [stage.epochs for stage in stages] == [
        stage.steps * stage.batch_size / stage.stats["pairs"] for stage in stages
    ]


@pytest.mark.parametrize(
    "stages",
    [
        "[{share: 0.2, fraction: 0.3}]",
        "[{share: 0.2, fraction: 0.125}]",
        "[{share: 0.7, fraction: 0.5}, {share: 0.7, fraction: 0.5}]",
    ],
)
def test_a_stage_that_cannot_be_made_is_refused(stages):
    with pytest.raises(ConfigError, match="length_schedule"):
        configure(f"length_schedule.stages={stages}")


def test_a_batch_depends_on_its_step_only(shards):
    config = configure(*STAGED)
    through = read(StagedBatches(shards, VOCABULARY, config), config, 0, 20)
    for step in (0, 3, 4, 7, 10, 19):
        (again,) = read(StagedBatches(shards, VOCABULARY, config), config, step, step + 1)
        assert same(through[step], again)
