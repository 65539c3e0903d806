from albert_lab.runs.progress import Lines


def test_a_run_says_its_steps_rarely_and_the_last(capsys):
    now = [0.0]
    lines = Lines("sop", lambda: now[0])
    for second in range(1, 21):
        now[0] = second
        numbers = {"step": second, "loss": 2.5, "tokens_per_second": 1000, "seconds_left": 20 - second}
        lines.show({"event": "training", "share": second / 20} | numbers)
    assert [line.split("step ")[1].split()[0] for line in capsys.readouterr().err.splitlines()] == ["1", "11", "20"]
