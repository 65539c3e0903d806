import pytest
from toy import toy_config

from albert_lab.errors import ConfigError
from albert_lab.training.device import check_memory


@pytest.mark.parametrize(
    "asked", ["model.hidden_size=400000", "batch_size=999999999999", "evaluation.num_pairs=999999999999"]
)
def test_a_run_that_exceeds_memory_is_refused_unless_the_check_is_off(tmp_path, asked):
    with pytest.raises(ConfigError, match="machine.memory_check=false"):
        check_memory(toy_config(tmp_path, asked))
    check_memory(toy_config(tmp_path, asked, "machine.memory_check=false"))
