from albert_lab.runs.progress import Position, RunProgress


class FakeClock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def line(share: float, training_seconds: float) -> dict:
    left = training_seconds / share * (1 - share)
    numbers = {"step": 10, "loss": 2.5, "mlm_accuracy": 12.5, "tokens_per_second": 1000}
    return {"event": "training", "share": share, "training_seconds": training_seconds, "seconds_left": left} | numbers


def last(capfd) -> str:
    return capfd.readouterr().err.splitlines()[-1]


def test_the_time_left_is_that_of_the_run_with_its_fine_tunings_and_of_the_study(capfd):
    # Fine-tunings take half of a budget, later runs three budgets.
    progress = RunProgress("sop", Position.read("2/4:0.5:3"), FakeClock())
    progress.show(line(share=0.25, training_seconds=30))
    shown = last(capfd)
    assert shown.startswith("[2/4] sop:  25%  step 10  loss 2.500  MLM 12.5 %  1,000 tokens/s")
    assert shown.endswith("2.5 min left, study 8.5 min"), "90 s of training, 60 s of fine-tuning, 360 s of later runs"


def test_fine_tunings_continue_the_bar_at_their_own_speed(capfd):
    clock = FakeClock()
    progress = RunProgress("sop", Position.read("1/2:0.5:1"), clock)
    progress.show(line(share=1.0, training_seconds=100))
    clock.now = 20
    progress.show_finetuning("SST-2, seed 0", 0, 4)
    assert last(capfd).endswith("0%  fine-tuning 1 of 4: SST-2, seed 0  50 s left, study 2.5 min")
    clock.now = 60
    progress.show_finetuning("RTE, seed 0", 1, 4)
    assert last(capfd).endswith("25%  fine-tuning 2 of 4: RTE, seed 0  2.0 min left, study 3.7 min")


def test_plain_lines_are_printed_rarely_and_once_at_the_end(capfd):
    clock = FakeClock()
    progress = RunProgress("sop", Position.read(None), clock)
    for second in range(1, 21):
        clock.now = second
        progress.show(line(share=second / 20, training_seconds=second))
    assert capfd.readouterr().err.count("step 10") == 3
