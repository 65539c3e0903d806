from toy import toy_overrides, train

from albert_lab.runs import results
from albert_lab.studies.experiment import from_overrides
from albert_lab.studies.plan import Plan, plan_study
from albert_lab.terminal.plans import of_other_length


def planned(corpus, *overrides: str) -> Plan:
    """The plan of `albert-lab pretrain`."""
    settings = toy_overrides(corpus, *overrides)
    if any(text.startswith("start_from=") for text in overrides):
        settings.remove("tokenizer.vocab_size=56")  # the weights determine it
    experiment, rest = from_overrides(settings, is_one=True)
    return plan_study(experiment, rest, tasks=[])


def test_a_run_of_another_length_is_named_before_its_training_and_its_steps_count_if_its_weights_are_kept(
    corpus, own_home, runs_here
):
    short = planned(corpus, "budget.value=2")
    assert not of_other_length(short)
    assert train(short).code == 0
    name = short.points[0].run.name
    assert name in of_other_length(planned(corpus, "budget.value=3"))
    assert not of_other_length(planned(corpus, "budget.value=3", "seed=1"))
    longer = planned(corpus, "budget.value=3", f"start_from={name}")
    assert not of_other_length(longer)
    assert train(longer).code == 0
    record = results.read(longer.points[0].run.folder)
    assert record
    assert (record.training.steps, record.data.earlier_steps) == (3, 2)
