import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from planted import analysed, claim, experiment, row, table
from records import SOP_ALARM, scored, toy_column, toy_finetuning, toy_run, with_numbers

from albert_lab.report import verdicts
from albert_lab.score import Score
from albert_lab.studies import experiment as experiments
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row

VALUES = {
    "64": [78.0, 79.0, 77.9],
    "128": [80.0, 81.0, 80.1],
    "256": [79.9, 80.8, 80.3],
    "768": [79.5, 80.5, 79.4],
}
CLAIMS = (
    claim("greater", row=row("128"), than=row("64")),
    claim("greater", row=row("64"), than=row("768")),
    claim("greater", row=row("64"), than=60),
    claim("within", row=row("128"), of=row("256"), margin=0.5),
    claim("ordered", order=[row("128"), row("768"), row("64")]),
    claim("monotone", axis="embedding_size", direction="rising"),
    claim("peak-at", axis="embedding_size", at="128"),
    claim("at-chance", row=row("64")) | {"metric": "sop_accuracy"},
    claim("ratio", row=row("64"), to=row("128"), low=1, high=2) | {"metric": "tokens_per_second"},
    claim("greater", row=row("128"), than=row("64")) | {"metric": "race"},
)
PAPER = {"64": "79.0", "128": "80.1", "256": "79.6", "768": "79.8"}
BEST = {"64": [60.0, 61.0, 62.0], "128": [65.0, 66.0, 67.5]}


def full_table(tunings: Mapping[str, Sequence[int]] = {"64": range(3), "128": range(3)}) -> list[Row]:
    """A table of claims on scores, speed and RACE, fine-tuned with these seeds."""
    rows = table(VALUES)
    for item in rows:
        label = item.labels["embedding_size"]
        for seed, run in enumerate(item.runs):
            columns = ()
            numbers: dict[str, float | Score] = {"average": run.numbers["average"]}
            numbers["sop_accuracy"] = scored(80.0 if label == "768" else 51.0, 0.0, 4000)
            numbers["tokens_per_second"] = 1000 + 500 * (label == "64") + run.seed
            if label in BEST and tunings:
                best = BEST[label][seed]
                tuned = [
                    toy_finetuning(run.name, "race", best + 0.4 * tuning, seed=tuning, floor=0)
                    for tuning in tunings[label]
                ]
                columns = (toy_column("race", *tuned),)
                numbers["race"] = best + 0.4
            item.runs[seed] = toy_run(run.name, run.seed, numbers, columns)
    return rows


def section(asked: Experiment, rows: Sequence[Row]) -> str:
    return verdicts.section(analysed(asked, rows))


def as_data(asked: Experiment, rows: Sequence[Row]) -> list[dict[str, Any]]:
    result = analysed(asked, rows)
    return verdicts.as_data(result.verdicts, result)


def test_verdicts_can_be_plain_values():
    result = as_data(experiment(*CLAIMS, paper=PAPER), full_table())
    assert [verdict["verdict"] for verdict in result][:3] == ["supported", "not supported", "supported"]
    assert result[0]["effect"] == pytest.approx(2.067, abs=0.001)
    assert result[0]["low"] < result[0]["effect"] < result[0]["high"]
    assert (result[0]["n"], result[0]["paired"], result[0]["unit"]) == (3, True, "points")
    assert result[0]["paper"] == pytest.approx(1.1)
    assert result[-1]["metric"] == "race"


def test_without_fine_tuning_a_tasks_claim_is_not_run_and_no_spread_is_shown():
    text = section(experiment(*CLAIMS, paper=PAPER), table(VALUES))
    assert "**Not run** (no run with E = 128 has race): " in text
    assert "Standard deviations" not in text


def test_one_fine_tuning_per_run_does_not_separate_the_sources_of_spread():
    assert "Standard dev" not in section(experiment(CLAIMS[-1]), full_table({"64": [1], "128": [1]}))
    text = section(experiment(CLAIMS[-1]), full_table({"64": [1], "128": range(3)}))
    assert "- `race`, E = 64: both together 1.00 (3 pre-trainings, 3 fine-tunings)" in text


def test_alarms_of_the_runs_are_shown_with_the_verdict():
    rows = table(VALUES, alarms=(SOP_ALARM,))
    text = section(experiment(CLAIMS[0]), rows)
    assert "Alarms: All 6 runs: SOP not above chance." in text
    assert "Alarms" not in section(experiment(CLAIMS[0]), table(VALUES))


def test_a_verdict_without_evidence_has_a_reason_and_no_number_of_seeds():
    text = section(experiment(CLAIMS[7]), table({"64": [50.0, 50.1, 50.2]}, "sop_accuracy"))
    assert "**Not learnt** (no row is clearly above chance (55 %): the best, E = 64, is at 50.1 %): " in text
    assert "seeds would decide" not in text


def test_a_difference_of_the_papers_cells_is_exact_and_rounded_half_up_as_the_paper_does():
    rows = losses_table("squad2", nsp=50.0, sop=50.0)
    # 80.0/77.1 and 77.2/74.6: 78.55 - 75.90.
    assert "paper +2.7." in section(experiments.named("sop-vs-nsp"), rows)


def losses_table(metric: str, **means: float) -> list[Row]:
    return [
        Row({"inter_sentence": loss}, {}, [toy_run(f"{loss}-{seed}", seed, {metric: mean}) for seed in range(3)], {})
        for loss, mean in means.items()
    ]


def test_an_effect_below_the_papers_is_called_smaller_if_the_seeds_show_it():
    values = {"64": [80.0, 81.0, 82.0], "128": [80.1, 81.0, 82.1]}
    enough, few = (
        section(experiment(CLAIMS[0], paper={"64": "79.0", "128": cell}), table(values)) for cell in ("84.0", "79.1")
    )
    assert "**Smaller than the paper's**" in enough
    assert re.search(r"corrected p of an effect as large as the paper's (= 0\.\d+|below 0\.001); paper \+5\.0", enough)
    assert "Points are not scaled" in enough
    assert "Points are not scaled" not in few
    assert "Smallest effect that 3 seeds would show (power 80 %)" in few
    assert "5 seeds would decide an effect of the paper's size" in few


def test_an_effect_beyond_a_margin_is_not_called_smaller_than_the_papers():
    values = {"64": [80.0, 81.0, 82.0], "128": [79.5, 80.6, 81.5]}
    within = claim("within", row=row("64"), of=row("128"), margin=0.5)
    text = section(experiment(within, paper={"64": "80.1", "128": "80.0"}), table(values))
    assert "These 3 seeds were enough for an effect of the paper's size; the measured one is less clear" in text


def test_an_undecided_claim_of_two_bounds_says_which_margin_its_seeds_would_show():
    def shown(margin: float) -> str:
        within = claim("within", row=row("64"), of=row("128"), margin=margin)
        return section(experiment(within), table({"64": [80.0, 81.0, 82.0], "128": [80.1, 80.9, 82.0]}))

    text = shown(0.1)
    assert "**Undecided**" in text
    found = re.search(r"Smallest margin on both sides that 3 seeds would show \(power 80 %\): ([\d.]+) points", text)
    assert found
    assert "**Supported**" in shown(float(found[1]))


def test_companions_are_separate_lines_that_name_their_claim():
    rows = table(VALUES)
    for item in rows:
        item.runs[:] = [with_numbers(run, {"mlm_loss": 5.0 - run.numbers["average"] / 100}) for run in item.runs]
    text = section(experiment(CLAIMS[7], CLAIMS[0]), rows)
    claim_lines = [line for line in text.splitlines() if line.startswith("- Claim ")]
    assert len(claim_lines) == 1
    sides = "E = 128 above E = 64"
    assert claim_lines[0].startswith(f"- Claim 2. **Supported**: `mlm_log_likelihood` {sides}: +0.0207 [")
    assert "nats per token, 3 seeds paired" in claim_lines[0]
    assert "by other measures, which do not count above" in text
    assert len(analysed(experiment(CLAIMS[0]), rows).companions) == 1


def test_tasks_of_the_average_at_their_floor_are_named_and_rows_are_counted():
    rows = table(VALUES)
    for item in rows:
        high = 80.0 if item is rows[0] else 50.0
        item.runs[:] = [
            with_numbers(run, {"race": scored(25.0, 25.0), "sst2": scored(high + 0.1 * run.seed - 0.1, 50.0, 10**6)})
            for run in item.runs
        ]
    text = section(experiment(CLAIMS[0]), rows)
    assert "of constant answers: `sst2` in 3 of 4 rows; `race` in every row." in text
    few = section(experiment(CLAIMS[0]), rows[:2])
    assert "of constant answers: `sst2` in E = 128; `race` in every row." in few


def test_rows_without_a_task_are_not_counted_at_its_floor():
    rows = table(VALUES)
    for item in rows[:2]:
        item.runs[:] = [with_numbers(run, {"race": scored(25.0 + 0.1 * run.seed, 25.1, 10**6)}) for run in item.runs]
    text = section(experiment(CLAIMS[0]), rows)
    assert "of constant answers: `race` in all 2 rows that have it." in text


def test_speeds_of_different_machines_are_not_compared():
    def decision(*machines):
        rows = table({"64": [120.0, 130.0, 126.0], "128": [100.0, 110.0, 104.0]}, column="tokens_per_second")
        for place, item in enumerate(rows):
            item.runs[:] = [
                toy_run(run.name, run.seed, run.numbers, processor=machines[(place + run.seed) % len(machines)])
                for run in item.runs
            ]
        (result,) = as_data(experiment(CLAIMS[8]), rows)
        return result["verdict"], result["reason"]

    assert decision("slow, 2 cores")[0] == "supported"
    assert decision("slow, 2 cores", "fast, 2 cores") == (
        "undecided",
        "its rows were computed on different devices or machines",
    )
