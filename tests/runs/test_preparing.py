import pytest
from toy import toy_config, write_corpus

from albert_lab.runs import preparing
from albert_lab.runs import run as runs
from albert_lab.studies.jobs import Job, print_commands


def test_the_line_of_the_preparation_comes_first_and_makes_all_that_its_runs_need(
    corpus, own_home, monkeypatch, capsys
):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    run = runs.plan(toy_config(corpus))
    folder = runs.create(run)
    assert preparing.lacking([run]) == [run]
    print_commands([Job(folder)], [run])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert ["albert_lab.runs.preparing" in line for line in lines] == [True, False]
    assert preparing.main([str(folder)]) == 0
    assert not preparing.lacking([run])
    assert {path.name for path in (own_home / "cache").iterdir()} >= {"shards", "tokenizers"}


@pytest.mark.parametrize(("sentences", "warns"), [(1, True), (12, False)])
def test_text_in_chunks_of_one_sentence_that_is_dropped_is_warned_of(own_home, tmp_path, sentences, warns):
    write_corpus(tmp_path / "texts", documents=120, sentences=sentences)
    write_corpus(tmp_path / "more", documents=40, sentences=14, seed=1).rename(tmp_path / "texts" / "long")
    lines = []
    preparing.prepare_all(
        [runs.plan(toy_config(tmp_path / "texts", "max_sequence_length=128", "model.max_position_embeddings=128"))],
        lines.append,
    )
    assert any(line.startswith("warning: ") and "in chunks of one sentence" in line for line in lines) == warns
