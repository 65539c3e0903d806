from albert_lab.measures import catalog
from albert_lab.measures.measure import Difference, PairMeasure


def test_every_measure_is_a_module_with_a_name_of_its_own():
    names = [measure.name for measure in catalog.measures()]
    assert names == [
        "mlm_accuracy",
        "nsp_accuracy",
        "nsp_released",
        "sop_accuracy",
        "sop_across_documents",
        "coherence",
    ]
    assert len(catalog.labels()) == len(names) + len(catalog.probes())
    assert set(catalog.labels()) == set(catalog.units())


def test_every_pair_measure_has_a_classifier_for_models_without_a_head():
    names = {measure.name: measure for measure in catalog.of_kind(PairMeasure)}
    for measure in names.values():
        assert measure.probe or names[measure.fitted_as or ""].probe
    for difference in catalog.of_kind(Difference):
        assert {difference.of, difference.minus} <= names.keys()
