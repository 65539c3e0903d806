"""Next sentence prediction: does the second segment follow, or is it as long a one from another document?"""

from albert_lab.measures.measure import PairMeasure, option

MEASURE = PairMeasure(
    "nsp_accuracy",
    "NSP",
    in_curves=True,
    objective=option("nsp"),
    negative="other-document",
    probe="nsp_probe",
    has_alarm=True,
)
