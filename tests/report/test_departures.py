from records import toy_record

from albert_lab.config.compose import load
from albert_lab.report.departures import departures, mixed, replaced


def notes(scale):
    return departures(scale, [toy_record(load([f"scale={scale}"]))])


def test_the_tokenizer_at_the_papers_scale_is_trained_like_the_released_one():
    tokenizer = load(["scale=paper"]).tokenizer
    assert (tokenizer.vocab_size, tokenizer.training_sentences, tokenizer.digit_commas) == (30_000, 10_000_000, "split")
    (note,) = [note for note in notes("paper") if note.startswith("Tokenizer")]
    assert "10,000,000 sentences of the corpus; commas after digits are split off" in note
    (other,) = [note for note in notes("laptop") if note.startswith("Tokenizer")]
    assert "200,000 sentences of the corpus; commas after digits are kept" in other


def test_what_the_paper_does_not_have_is_noted_with_the_number_of_its_runs():
    other = toy_record()
    with_rope = other.config.model_copy(update={"position_encoding": "rope"})
    own = other.model_copy(update={"config": with_rope})
    assert not any("does not have" in note for note in departures("smoke", [other]))
    for runs, number in (([other, own], "1 of 2 runs"), ([own], "all runs")):
        note = f"What the paper does not have, in {number}: position_encoding=rope."
        assert departures("smoke", runs)[0] == note


def test_rows_of_different_processors_are_noted():
    run = toy_record()
    other = run.model_copy(update={"provenance": run.provenance.model_copy(update={"processor": "another"})})
    assert mixed([run, run]) == []
    assert mixed([run, other]) == [
        "Rows were computed on different devices (Linux, another, 2 cores; Linux, toy, 2 cores); speeds of runs do"
        " not compare, scores up to rounding."
    ]


def test_a_setting_of_the_experiment_that_the_command_replaced_is_noted():
    fixed = ["sharing=all-shared", "embedding_size=${scale.roles.embedding_size.128}"]
    assert replaced(fixed, ["albert-lab extra-data scale=overnight sharing=all-shared --jobs 2"]) == []
    (note,) = replaced(fixed, 2 * ["albert-lab extra-data 'embedding_size=36'"])
    assert "`embedding_size=36` for `${scale.roles.embedding_size.128}`" in note
