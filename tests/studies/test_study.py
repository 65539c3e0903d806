import pytest
from toy_reports import toy_report

from albert_lab.errors import DamagedFileError
from albert_lab.studies import study
from albert_lab.studies.experiment import Experiment


@pytest.mark.parametrize("label", ["none", "nps", "0.2"])
def test_a_row_has_a_label_of_its_value(tmp_path, label):
    content = {"name": "toy", "title": "Toy", "source": "own study", "columns": ["mlm_accuracy"]}
    asked = Experiment.model_validate(content | {"grid": {"inter_sentence": ["nsp", "none"], "dropout": ["1e-1"]}})
    folder = toy_report(tmp_path / "toy", asked)
    assert {point.labels["dropout"] for point in study.read(folder).points} == {"1e-1"}
    axis, now = ("dropout", "1e-1") if label == "0.2" else ("inter_sentence", "nsp")
    file = folder / study.STUDY
    file.write_text(file.read_text().replace(f'"paper_{axis}": "{now}"', f'"paper_{axis}": "{label}"', 1))
    with pytest.raises(DamagedFileError, match=f"{axis}={label} is no label of {axis}="):
        study.read(folder)
