"""The plan of seeds of a study: the numbers of seeds at which it is judged, chosen before its first run."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import model_validator

from albert_lab.config.schema import check_looks
from albert_lab.distinct import Distinct
from albert_lab.record import Record

Spending = Literal["pocock", "obrien-fleming"]


class SeedPlan(Record):
    """The looks at a study.

    Attributes:
        seeds: all seeds, in the order in which they are added.
        looks: the numbers of seeds at which the study is judged, rising to that of all seeds.
        spending: how the error of verdicts is divided among the looks (analysis/looks.py).
        unplanned: numbers of seeds at which some of the runs were judged before, at no look of this plan.
    """

    seeds: Annotated[tuple[int, ...], Distinct]
    looks: tuple[int, ...]
    spending: Spending = "pocock"
    unplanned: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _looks_fit(self) -> "SeedPlan":
        check_looks(self.looks, len(self.seeds))
        return self

    def seeds_at(self, look: int) -> tuple[int, ...]:
        return self.seeds[: self.looks[look - 1]]

    def notes(self, most: int | None) -> list[str]:
        """A note below a price, on the looks that it includes; none if there is a single one."""
        if len(self.looks) == 1:
            return []
        numbers = ", ".join(map(str, self.looks))
        return [
            f"Looks are planned at {numbers} seeds; the price is that of {self.looks[self.last(most) - 1]}. A study"
            " goes on to its next look only while more seeds can decide a claim; `--looks 1` ends after the first."
        ]

    def last(self, most: int | None) -> int:
        """The last look, if a study ends after so many; None: after all."""
        return min(most or len(self.looks), len(self.looks))

    def look_of(self, seeds: int) -> int:
        """The look that this many seeds belong to: the first with as many, else the last; counted from 1."""
        return next((look for look, most in enumerate(self.looks, 1) if seeds <= most), len(self.looks))

    def continues(self, before: "SeedPlan") -> bool:
        """Whether an earlier plan has the same looks at the same seeds."""
        return (before.seeds, before.looks, before.spending) == (self.seeds, self.looks, self.spending)

    def after(self, before: "SeedPlan | None", judged: Sequence[int]) -> "SeedPlan":
        """The plan, with the numbers of seeds at which its runs were judged before.

        Args:
            before: the plan of the earlier study; None if it had none.
            judged: the seeds of the earlier study that are runs of this one too.
        """
        if before and self.continues(before):
            return self.model_copy(update={"unplanned": before.unplanned})
        if not judged:
            return self
        looks = [look for look in before.looks if look <= len(judged)] if before else []
        seen = {*looks, len(judged), *(before.unplanned if before else ())}
        is_start = set(judged) == set(self.seeds[: len(judged)])
        unplanned = sorted(number for number in seen if not (is_start and number in self.looks))
        return self.model_copy(update={"unplanned": tuple(unplanned)})
