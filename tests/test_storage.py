from albert_lab import storage


def test_an_atomic_write_leaves_no_other_file(tmp_path):
    storage.write_atomically(tmp_path / "a.txt", "one")
    storage.write_atomically(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "two")]
