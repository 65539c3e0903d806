"""Masked language modelling: chunks as SOP has them, unswapped, masked like the training batches (section 4.1)."""

from albert_lab.measures.measure import TokenMeasure, option

# Differs from the paper, whose set is made from the development texts of SQuAD and RACE (section 4.1).
MEASURE = TokenMeasure("mlm_accuracy", "MLM", in_curves=True, objective=option("none"))
