import pytest
from toy import toy_config

from albert_lab.cost import capacity
from albert_lab.errors import ConfigError


@pytest.mark.parametrize("asked", ["model.hidden_size=400000000", "batch_size=999999999999"])
def test_a_run_that_exceeds_memory_is_refused_with_both_numbers_unless_overridden(tmp_path, asked):
    with pytest.raises(ConfigError, match=r"needs about .* GiB, and this machine has .* GiB: lower model.hidden_size"):
        capacity.check_training(toy_config(tmp_path, asked))
    capacity.check_training(toy_config(tmp_path, asked, "machine.memory_check=false"))
