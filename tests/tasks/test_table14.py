from pathlib import Path

import pytest
import yaml

from albert_lab.tasks.task import load_task

PRINTED = yaml.safe_load(Path(__file__).with_name("table14.yaml").read_text())


@pytest.mark.parametrize("name", PRINTED["rows"])
def test_the_settings_of_a_task_at_full_scale_are_those_of_the_papers_table_14(name):
    settings = load_task(name).at("paper")
    configured = [getattr(settings, key) for key in PRINTED["keys"]]
    assert configured == [float(cell) for cell in PRINTED["rows"][name]]
