"""NSP with negatives as released: the second segment is from a random place of a random other document.

Source: create_pretraining_data.py, create_instances_from_document. All else is as in nsp.py.
"""

from albert_lab.config.data import InterSentenceConfig
from albert_lab.measures.measure import PairMeasure, option


def _objective() -> InterSentenceConfig:
    content = option("nsp")().model_dump()
    content |= {"name": "nsp-released"}
    content["labels"][1]["kind"] = "random-document"
    return InterSentenceConfig.model_validate(content)


MEASURE = PairMeasure(
    "nsp_released",
    "NSP as released",
    objective=_objective,
    negative="other-document",
    probe="nsp_released_probe",
)
