from albert_lab.analysis.speed import speedups
from albert_lab.analysis.tables import Row


def row(model: str, *speeds: float) -> Row:
    runs = [{"run": f"{model}-{index}", "tokens_per_second": speed} for index, speed in enumerate(speeds)]
    return Row({"model": model}, {"model": model}, runs, {})


def test_a_speed_up_is_the_ratio_of_mean_throughputs():
    table = [row("BERT-large", 100.0, 300.0), row("ALBERT-large", 340.0), row("ALBERT-xxlarge")]
    assert speedups(table, {"model": "BERT-large"}) == [1.0, 1.7, None]


def test_without_the_reference_row_there_is_no_speed_up():
    assert speedups([row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None]
    assert speedups([row("BERT-large"), row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None, None]
