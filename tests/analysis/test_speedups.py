import pytest
from records import toy_record, toy_run

from albert_lab.analysis.speedups import are_of_different_hardware, speedups
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.results import INFERENCE_SPEED
from albert_lab.studies.table import Row


def row(model: str, *speeds: float) -> Row:
    runs = [toy_run(f"{model}-{seed}", seed, {"tokens_per_second": speed}) for seed, speed in enumerate(speeds)]
    return Row({"model": model}, {"model": model}, runs, {})


def test_a_speed_up_is_the_ratio_of_mean_throughputs():
    table = [row("BERT-large", 100.0, 300.0), row("ALBERT-large", 340.0), row("ALBERT-xxlarge")]
    assert speedups(table, {"model": "BERT-large"}) == [1.0, 1.7, None]


def test_a_run_that_did_not_have_the_machine_to_itself_has_no_speeds():
    record = toy_record()
    for jobs in (1, 2, None):
        provenance = record.provenance.model_copy(update={"jobs": jobs})
        numbers = ReportedRun(record.model_copy(update={"provenance": provenance})).numbers
        assert ({"tokens_per_second", "inference_tokens_per_second"} <= numbers.keys()) == (jobs == 1)


def test_without_the_reference_row_there_is_no_speed_up():
    assert speedups([row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None]
    assert speedups([row("BERT-large"), row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None, None]


def test_the_speed_up_of_inference_is_separate_and_missing_if_not_timed():
    table = [
        Row({"model": model}, {"model": model}, [toy_run("timed", 0, {INFERENCE_SPEED: speed})], {})
        for model, speed in (("BERT-large", 300.0), ("ALBERT-large", 330.0))
    ]
    table += [row("ALBERT-xxlarge", 100.0), row("BERT-base", 100.0)]
    assert speedups(table, {"model": "BERT-large"}, INFERENCE_SPEED) == [1.0, pytest.approx(1.1), None, None]


def test_the_hardware_of_a_run_is_its_gpus_or_else_its_machine():
    origin = toy_record().provenance
    assert origin.hardware == "Linux, toy, 2 cores"
    gpus = {"device": "cuda", "devices": ("NVIDIA H100", "NVIDIA H100")}
    assert origin.model_copy(update=gpus).hardware == "NVIDIA H100"


def test_rows_are_comparable_if_the_runs_of_each_seed_are_of_one_machine():
    def of(*machines: str, first: int = 0) -> Row:
        runs = [toy_run("run", seed, {}, processor=machine) for seed, machine in enumerate(machines, first)]
        return Row({}, {}, runs, {})

    assert not are_of_different_hardware([of("slow", "fast"), of("slow", "fast")])
    assert are_of_different_hardware([of("slow", "fast"), of("fast", "slow")])
    assert are_of_different_hardware([of("slow", "fast"), of("fast", first=2)])
    assert not are_of_different_hardware([of("fast", "fast"), of("fast", first=2)])
