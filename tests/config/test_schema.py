"""The identity of a run: what of its configuration is part of its name."""

import json
from functools import reduce
from operator import getitem

import pytest

from albert_lab.config import compose as config
from albert_lab.config.schema import digest

# Another allowed value of each key for which neither twice nor half its value is allowed.
OTHER_VALUES = {
    "length_schedule.stages": [],
    "model.hidden_act": "relu",
    "inter_sentence.labels": [
        {"kind": "consecutive", "share": 0.25},
        {"kind": "swapped", "share": 0.75},
    ],
    "inter_sentence.single_sentence_chunks": "other-document",
    "corpus.source": "files",
    "inter_sentence.cutting": "released",
    "corpus.source_documents": "auto",
    "corpus.documents": "blank-line",
    "corpus.document_tokens": 60,
    "corpus.sentences": "line",
    "added_corpus.source_documents": "auto",
    "added_corpus.documents": "blank-line",
    "added_corpus.sentences": "line",
    "projection": "always",
    "tokenizer.character_coverage": 0.99,
    "masking.max_predictions": 20,
    "optimizer.name": "lamb",
    "optimizer.betas": [0.9, 0.99],
    "budget.unit": "tokens",
    "machine.device": "cpu",
    "machine.precision": "fp32",
    "machine.threads": 2,
    "machine.workers": 2,
    "machine.micro_batch_size": 8,
}
NOT_PART_OF_THE_NAME = (
    "scale.",
    "corpus.path",
    "added_corpus.path",
    "tokenizer.model_file",
    "machine.",
)


def leaves(content, prefix=""):
    for key, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def run_id(resolved):
    return digest(resolved.identity())


def with_other_value(resolved, key):
    content = json.loads(resolved.model_dump_json())
    *sections, last = key.split(".")
    section = reduce(getitem, sections, content)
    value = section[last]
    if key in OTHER_VALUES:
        assert value != OTHER_VALUES[key]
        section[last] = OTHER_VALUES[key]
    elif isinstance(value, bool):
        section[last] = not value
    elif isinstance(value, str):
        section[last] = value + "-other"
    else:
        section[last] = (value / 2 or 0.25) if isinstance(value, float) else (value * 2 or 1)
    return config.validate(content)


LAPTOP, IN_TOKENS, TIMED = (
    config.load(["length_schedule=short-first", "optimizer=adamw", f"budget={budget}"])
    for budget in ("steps", "tokens", "wall-clock")
)
LEAVES = list(leaves(LAPTOP.model_dump()))
# Keys that have one value; and another source of added text needs a path
# (tests/data/test_added_corpus.py).
FIXED = {
    "corpus.datasets",
    "added_corpus.datasets",
    "tokenizer.digit_commas",
    "added_corpus.source",
}
IN_THE_NAME = [
    key for key in LEAVES if not key.startswith(NOT_PART_OF_THE_NAME) and key not in FIXED
]
OF_THE_MACHINE = [key for key in LEAVES if key.startswith("machine.")]


@pytest.mark.parametrize("key", IN_THE_NAME)
def test_a_run_with_another_value_of_any_key_has_another_name(key):
    assert run_id(with_other_value(LAPTOP, key)) != run_id(LAPTOP)


@pytest.mark.parametrize("key", OF_THE_MACHINE)
def test_the_machine_is_part_of_the_name_only_with_a_wall_clock_budget(key):
    for counted in (LAPTOP, IN_TOKENS):
        assert run_id(with_other_value(counted, key)) == run_id(counted)
    assert run_id(with_other_value(TIMED, key)) != run_id(TIMED)


def test_a_scale_and_its_explicit_values_are_the_same_run():
    laptop, smoke = (
        LAPTOP.model_dump(mode="json"),
        config.load(["scale=smoke"]).model_dump(mode="json"),
    )
    assert run_id(config.validate({**smoke, "scale": laptop["scale"]})) == run_id(
        config.validate(smoke)
    )


def test_only_keys_have_values():
    assert [LAPTOP.value(key) for key in ("optimizer.name", "copy", "budget.identity")] == [
        "adamw",
        None,
        None,
    ]


def test_a_path_is_not_part_of_the_name():
    def load(folder):
        files = [f"corpus.path={folder}/*.txt", f"tokenizer.model_file={folder}/a.model"]
        return config.load(["corpus=files", "tokenizer=model-file", *files])

    assert load("here") != load("there")
    assert run_id(load("here")) == run_id(load("there"))


def test_a_number_has_the_same_hash_in_every_notation():
    written = [
        ["budget.value=500"],
        ["budget.value=500.0"],
        ["budget.value=5e2"],
        ["++budget.value=500"],
    ]
    assert len({run_id(config.load(overrides)) for overrides in written}) == 1
    assert run_id(config.load(["dropout=0"])) == run_id(config.load(["dropout=0.0"]))
