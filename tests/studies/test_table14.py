from albert_lab.studies import table14

SETTINGS = {
    "learning_rate",
    "batch_size",
    "dropout",
    "classifier_dropout",
    "steps",
    "warmup_steps",
    "max_sequence_length",
}


def test_the_configured_settings_are_those_of_the_paper():
    result = table14.compare()
    assert len(result) == 12
    squad = next(row for row in result if row["task"] == "squad1")
    assert squad["max_sequence_length"] == {"configured": 384, "paper": 384.0, "differs": False}
    assert not [
        (row["task"], key) for row in result for key, cell in row.items() if key in SETTINGS and cell["differs"]
    ]


def test_a_setting_that_differs_is_marked_and_counted():
    result = table14.compare()
    result[0]["steps"] = {"configured": 100, "paper": 5336.0, "differs": True}
    text = table14.text(result)
    assert "100 * (5336)" in text
    assert "1 of 84 settings differ" in text
