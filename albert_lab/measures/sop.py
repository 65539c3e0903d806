"""Sentence order prediction: are two consecutive segments in order or swapped? (section 3.1)"""

from albert_lab.measures.measure import PairMeasure, option

MEASURE = PairMeasure(
    "sop_accuracy",
    "SOP",
    in_curves=True,
    objective=option("sop"),
    negative="swapped",
    probe="sop_probe",
    has_alarm=True,
)
