"""The training speed of a device: measured by earlier runs on such a device, else assumed from its peak."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from albert_lab import paths
from albert_lab.config.schema import MachineConfig, RunConfig
from albert_lab.cost import capacity, devices
from albert_lab.cost.estimate import MEASURED_UTILISATION, matrix_product_flops_per_second
from albert_lab.cost.parameters import count_training_flops
from albert_lab.errors import ConfigError
from albert_lab.runs import results

# The number of newest records to read: several, since other work on the machine slowed some of the runs.
_NEWEST = 100
# A run predicts the speed of runs whose steps are larger or smaller by at most this factor.
_NEAR = 8.0
_USABLE_SHARE = 0.9  # of a GPU's memory


@dataclass(frozen=True)
class Rates:
    """FLOP/s of training on one device, padding included, and the share of tokens in batches.

    Attributes:
        device: a name that --on takes.
        why: the reason for this device, if neither the user nor the machine determines it.
        records: of finished runs, the newest first.
    """

    device: str
    why: str = ""
    records: tuple[results.RunRecord, ...] = field(default=(), repr=False)

    @property
    def gpu(self) -> devices.Gpu | None:
        """The GPU; None for the CPU of this machine."""
        return devices.gpu(self.device)

    def of(self, config: RunConfig) -> float:
        """FLOP/s of one process that trains a configuration: that of the fastest run of similar size on such a device.

        Without such a run, it is the assumed rate, or that of the fastest run of any size if this is higher.
        """
        found = [self._measured[record.name] for record in self._own(config.machine)]
        size = _step_flops(config)
        near = [speed for other, speed in found if 1 / _NEAR <= other / size <= _NEAR]
        return max(near) if near else max([self.assumed(config.machine), *(speed for _, speed in found)])

    def fill(self, config: RunConfig) -> float:
        """The share of positions that are tokens, from the newest run on such text; 1 if there is none."""
        for record in self.records:
            if _text(record.config) == _text(config):
                return 1 - record.data.padding_share
        return 1.0

    def assumed(self, config: MachineConfig) -> float:
        """The FLOP/s that are assumed without a run."""
        if self.gpu is None:
            return self._measured_here * MEASURED_UTILISATION
        precision = self.gpu.precision(config.precision)
        return self.gpu.peak(precision) * self.gpu.share(precision)

    def there(self, config: RunConfig) -> RunConfig:
        """The configuration with the open settings of machine.* resolved for the device."""
        update: dict[str, object] = {"device": "cpu"}
        if self.gpu is not None:
            precision = self.gpu.precision(config.machine.precision)
            update = {"device": "cuda", "precision": precision}
            if config.machine.micro_batch_size == "auto":
                usable = int(_USABLE_SHARE * self.gpu.memory * 2**30)
                processes = config.machine.processes
                update["micro_batch_size"] = capacity.micro_batch_size(config, "cuda", precision, processes, usable)
        return config.model_copy(update={"machine": config.machine.model_copy(update=update)})

    def source(self, configs: Iterable[RunConfig]) -> str:
        """The source of the rates of some configurations, as text for the user."""
        chosen = list({_step_flops(config): config for config in configs}.values())  # one of each size
        speeds = sorted(self.of(config) / 1e9 for config in chosen)
        shown = f"{speeds[0]:,.1f}" + (f" to {speeds[-1]:,.1f}" if speeds[-1] > 1.05 * speeds[0] else "")
        machine = chosen[0].machine
        if own := self._own(machine):
            how = f"the fastest of {len(own)} runs on such a device, of similar size if there are any"
        elif self.gpu is None:
            how = (
                f"{MEASURED_UTILISATION:.0%} of what one core reaches here in float32 matrix products, as training at"
                " scale=laptop was measured to reach elsewhere; no run was made here yet"
            )
        else:
            precision = self.gpu.precision(machine.precision)
            is_measured = precision in self.gpu.measured
            how = (
                f"{self.gpu.share(precision):.0%} of its peak of {self.gpu.peak(precision) / 1e12:,.0f} TFLOP/s in"
                f" {precision}, {'measured at scale=gpu' if is_measured else 'an assumption'} that small models"
                " do not reach; no run was made on one yet"
            )
        title = "the CPU of this machine" if self.gpu is None else self.gpu.title
        return f"on {title}{f' ({self.why})' if self.why else ''}, {shown} GFLOP/s: {how}"

    @cached_property
    def _measured(self) -> dict[str, tuple[float, float]]:
        """FLOPs of a step and FLOP/s of each run, by name."""
        return {record.name: (_step_flops(record.config), _speed(record)) for record in self.records}

    @cached_property
    def _measured_here(self) -> float:
        return matrix_product_flops_per_second()

    def _own(self, config: MachineConfig) -> list[results.RunRecord]:
        """The records of runs on this device, in the precision asked for."""
        found = []
        for record in self.records:
            made = record.provenance
            is_own = made.device == "cpu" if self.gpu is None else any(map(self.gpu.is_called, made.devices))
            if is_own and config.precision in ("auto", made.precision):
                found.append(record)
        return found


def choose(asked: str | None, config: RunConfig) -> Rates:
    """The rates of the device that --on names, or else of the one that will run a configuration here.

    Raises:
        ConfigError: no such device.
    """
    name, why = devices.choose(asked, config.machine)
    return Rates(name, why, tuple(islice(_records(), _NEWEST)))


def _records() -> Iterable[results.RunRecord]:
    files = paths.runs().glob(f"*/{results.RECORD}")
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            record = results.read(file.parent)
        except ConfigError:  # a record of an earlier version, with other keys
            continue
        if record:
            yield record


def _speed(record: results.RunRecord) -> float:
    """FLOP/s of one process of a run, padding included; tokens_per_second does not include padding."""
    places = record.training.tokens_per_second / (1 - record.data.padding_share)
    return places * record.train_flops_per_token / record.provenance.processes


def _step_flops(config: RunConfig) -> float:
    return count_training_flops(config) * config.batch_size * config.max_sequence_length


def _text(config: RunConfig) -> tuple[object, ...]:
    """The settings that determine the share of padding."""
    corpus = config.corpus
    return corpus.name, corpus.documents, config.max_sequence_length, config.short_sequence_probability
