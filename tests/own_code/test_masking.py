"""A toy test of an own masking: copy it to test yours."""

import numpy as np
import pytest

from albert_lab import paths, registry
from albert_lab.config.compose import load
from albert_lab.data.masking import mask_training
from albert_lab.errors import ConfigError

EXAMPLES = paths.PACKAGE.parent / "examples"
IDS = np.arange(5, 5 + 400).reshape(4, 100)
TEXT = np.broadcast_to(np.arange(100) > 0, IDS.shape)  # all but [CLS]


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


def masked(config):
    word_starts = np.ones(1000, dtype=bool)
    rng = np.random.default_rng(0)
    return mask_training(IDS, np.ones_like(TEXT), TEXT, word_starts, config.masking, 4, rng)


def test_thirty_percent_of_the_tokens_are_masked():
    registry.include(EXAMPLES / "masking_30.py")
    config = load(["scale=smoke", "masking.method=thirty-percent"])
    masked_ids, positions, labels = masked(config)
    assert len(positions) == 4 * 30 == 4 * config.masking.most_predictions(100)
    np.testing.assert_array_equal(labels, IDS.ravel()[positions])
    changed = np.flatnonzero(masked_ids.ravel() != IDS.ravel())
    assert set(changed) <= set(positions)


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ("[3, 2]", "ascending"),
        ("[]", "at least one"),
        ("[0]", "those of text"),
        ("range(1, 90)", "more than its share"),
    ],
)
def test_positions_that_an_own_masking_must_not_return_are_named(tmp_path, positions, said):
    file = tmp_path / "own.py"
    file.write_text(
        "import numpy as np\n"
        "from albert_lab.extend import masking\n\n"
        "@masking('mine', share=0.2)\n"
        "def mine(input_ids, attention_mask, can_mask, word_starts, settings, mask_id, rng):\n"
        f"    positions = np.array({positions}, dtype=np.int64)\n"
        "    return input_ids.copy(), positions, input_ids.ravel()[positions]\n"
    )
    registry.include(file)
    with pytest.raises(ConfigError, match=rf"masking.method=mine: .*{said}"):
        masked(load(["scale=smoke", "masking.method=mine"]))
