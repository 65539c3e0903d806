import re

import pytest
from toy import toy_config

from albert_lab.cost import capacity
from albert_lab.errors import ConfigError

OF_THE_MODEL = "model.hidden_size or model.num_layers or model.intermediate_size"


@pytest.mark.parametrize(
    ("asked", "helps"),
    [
        (["model.hidden_size=400000000"], "model.hidden_size or model.intermediate_size"),
        (
            ["batch_size=999999999999"],
            f"{OF_THE_MODEL} or batch_size or machine.micro_batch_size or max_sequence_length",
        ),
        (["batch_size=9999999999", "machine.micro_batch_size=1"], "batch_size or max_sequence_length"),
        (["evaluation.num_pairs=999999999999"], "max_sequence_length or evaluation.num_pairs"),
    ],
)
def test_a_run_that_exceeds_memory_is_refused_with_both_numbers_and_the_keys_that_help(tmp_path, asked, helps):
    said = rf"needs about .* GiB, and this machine has .* GiB: lower {re.escape(helps)}; or give machine.memory"
    with pytest.raises(ConfigError, match=said) as refused:
        capacity.check_training(toy_config(tmp_path, *asked))
    assert "tokenizer.vocab_size" not in str(refused.value)
    capacity.check_training(toy_config(tmp_path, *asked, "machine.memory_check=false"))
