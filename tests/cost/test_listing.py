from albert_lab.cost import listing


def test_notes_are_as_wide_as_the_terminal_up_to_a_limit(monkeypatch):
    table = listing.Listing([{"a": 1}], ["word " * 100])
    for columns, width in (("60", 60), ("400", listing.WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        lengths = [len(line) for line in table.as_text().splitlines()[3:]]
        assert width - 10 < max(lengths) <= width
    assert table.as_dict()["notes"] == table.notes
