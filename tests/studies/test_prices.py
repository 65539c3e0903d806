import os
from dataclasses import replace

import pytest
from records import toy_finetuning, toy_record
from toy import toy_plan

from albert_lab.model.counts import count, count_training_flops
from albert_lab.runs.finetunings import Finetuning
from albert_lab.runs.results import RECORD, write
from albert_lab.storage import write_atomically
from albert_lab.studies.prices import last_speed, paces, price, tunings
from albert_lab.tasks.records import record_file
from albert_lab.tasks.task import load_task
from albert_lab.terminal.plans import in_words


@pytest.mark.parametrize(
    "overrides", [[], ["sharing=not-shared", "inter_sentence=none"], ["ffn_block=glu"]]
)
def test_flops_and_disk_are_those_that_the_model_is_counted_to_take(corpus, own_home, overrides):
    plan = toy_plan(corpus, "budget.value=10", *overrides)
    config, found = plan.config, price([plan])
    positions = 10 * config.batch_size * config.max_sequence_length
    assert found.flops == pytest.approx(positions * count_training_flops(config), rel=0.05)
    assert found.disk_bytes == pytest.approx(24 * count(config).total, rel=0.15)


def test_time_is_work_over_the_speed_of_the_newest_run_on_the_device_and_its_evaluations(
    corpus, own_home
):
    plan = toy_plan(corpus)
    assert "FLOPs (no speed known for cpu)" in in_words(price([plan]))
    record = toy_record()
    for name, tokens, device in (
        ("old", 500, "cpu"),
        ("new", 1000, "cpu"),
        ("gpu", 10_000_000, "cuda"),
    ):
        times = {"training_seconds": 10.0, "total_seconds": 14.0}
        training = record.training.model_copy(update={"tokens": tokens, "steps": 100, **times})
        provenance = record.provenance.model_copy(update={"device": device, "jobs": 2})
        (folder := own_home / "runs" / name).mkdir(parents=True)
        changed = {
            "name": name,
            "training": training,
            "provenance": provenance,
            "config": plan.config,
        }
        write(folder, record.model_copy(update=changed))
    os.utime(own_home / "runs" / "old" / RECORD, (0, 0))
    speed = (last_speed("cpu") or (0.0,))[0]
    of_token = record.train_flops_per_token / plan.config.model.hidden_size
    assert speed == 2 * (100 / (1 - record.data.padding_share) * of_token), "of two runs at a time"
    assert (last_speed("cuda") or (0.0,))[0] == pytest.approx(1e4 * speed)
    evaluations = 2 * count_training_flops(plan.config) / record.train_flops_per_token
    work = price([plan]).flops / plan.config.model.hidden_size
    assert price([plan]).seconds == pytest.approx(work / speed + evaluations, rel=0.05)
    assert in_words(price([plan])).startswith("1 run, about ")
    task = load_task("mnli")
    point = replace(plan.points[0], missing=(Finetuning(plan.points[0].run, task, 0),))
    done = toy_finetuning("new", "mnli", 50.0).model_copy(
        update={"settings": task.fitted(plan.config)}
    )
    write_atomically(record_file(own_home / "runs" / "new", "mnli", 0), done.model_dump_json())
    assert sum(tunings(point, paces("cpu")).values()) / speed == pytest.approx(
        done.total_seconds / 2
    )
    assert price([toy_plan(corpus, "machine.device=auto")], "--gres=gpu:1").device == "cuda"
