"""Does a model need whole segments for sentence order? SOP on held-out pairs, each segment cut to
its first half.

A held-out measure of your own: every run of a command that includes this file is scored by it.
"""

from dataclasses import replace

from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.measures.catalog import MEASURES, SOP


def cut(pairs: Pairs, shards: Shards, seed: int) -> Pairs:
    return replace(pairs, a_length=(pairs.a_length + 1) // 2, b_length=(pairs.b_length + 1) // 2)


MEASURES["sop_of_halves"] = replace(
    SOP, name="sop_of_halves", label="SOP of halves", changed=cut, fitted_as=SOP.name, probe=None
)
