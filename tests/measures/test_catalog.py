from albert_lab.measures import catalog
from albert_lab.measures.measure import Difference, PairMeasure


def test_every_pair_measure_has_a_classifier_for_models_without_a_head():
    names = {measure.name: measure for measure in catalog.of_kind(PairMeasure)}
    for measure in names.values():
        assert measure.probe or names[measure.fitted_as or ""].probe
    for difference in catalog.of_kind(Difference):
        assert {difference.of, difference.minus} <= names.keys()
