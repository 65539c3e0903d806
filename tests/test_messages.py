from albert_lab.messages import with_progress


def test_long_work_regularly_reports_its_progress():
    said = []
    assert list(with_progress("abc", 3, "{} of {} batches", said.append, every=0)) == ["a", "b", "c"]
    assert said == ["0 of 3 batches", "1 of 3 batches", "2 of 3 batches"]
    assert not list(with_progress([], 0, "{} of {}", said.append))
    assert len(said) == 3
