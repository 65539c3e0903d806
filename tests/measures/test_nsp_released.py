import numpy as np
from toy import toy_config
from toy_shards import make_prose, sources_of

from albert_lab.measures.catalog import NSP, NSP_RELEASED


def drawn(tmp_path):
    shards = make_prose(300, sentences=6, tokens=8)
    config = toy_config(tmp_path)
    return shards, *(measure.pairs(shards, config, 10_000) for measure in (NSP, NSP_RELEASED))


def test_negatives_are_of_another_source_and_positives_consecutive(tmp_path):
    shards, _, pairs = drawn(tmp_path)
    first, second = sources_of(shards, pairs)
    assert np.array_equal(first == second, pairs.label == 0)
    assert abs(np.mean(pairs.label) - 0.5) < 0.01


def test_negatives_begin_a_sentence_anywhere_where_the_balanced_ones_are_second_segments(tmp_path):
    shards, balanced, released = drawn(tmp_path)

    def starts_of_documents(pairs) -> float:
        # not truncated
        negative = pairs.take((pairs.label == 1) & (pairs.a_length + pairs.b_length < 29))
        begins = shards.sentence_offsets[
            shards.document_offsets[shards.document_at(negative.b_start)]
        ]
        assert np.isin(negative.b_start, shards.sentence_offsets).all()
        return float(np.mean(negative.b_start == begins))

    assert starts_of_documents(balanced) == 0, "a second segment never begins a document"
    assert starts_of_documents(released) > 0.1
