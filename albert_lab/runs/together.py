"""Several processes that train one run: `python -m albert_lab.runs.together NUMBER FOLDER
[ARGUMENTS]`.

torchrun starts them. It ends with 1 whatever happened, and tells it in a block of its own; this
ends with the exit code of the process that ended the others, which has said why (worker.py).
"""

import logging
import os
import signal
import sys
from collections.abc import Iterable, Sequence

from albert_lab import signals
from albert_lab.errors import INTERRUPTED, STOPPED

# torchrun kills what has not ended so many seconds after a stop, by default 30: too few for a large
# model to be saved. Versions of torch before 2.12 do not know this variable.
_SHUTDOWN = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "3600"}


def main(processes: str, arguments: Sequence[str]) -> int:
    """Train a run as worker.py does with these arguments, and return the exit code."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    signals.end_with_parent()
    os.environ |= _SHUTDOWN | os.environ | {signals.PARENT: str(os.getpid())}
    started = ["--standalone", f"--nproc-per-node={processes}", "-m", "albert_lab.runs.worker"]
    try:
        torchrun.run(torchrun.parse_args([*started, *arguments]))
    except SignalException as error:
        return INTERRUPTED if error.sigval == signal.SIGINT else STOPPED
    except ChildFailedError as error:
        return code_of(failure.exitcode for failure in error.failures.values())
    return 0


def code_of(codes: Iterable[int]) -> int:
    """The exit code of the process that ended the others.

    Args:
        codes: of the processes that did not end with 0, negative if a signal killed one.

    Returns:
        The code of a failure; else 128 and the number of the signal that killed one, as of a shell;
        else STOPPED, with which those end that save and those that lost another one.
    """
    for code in codes:
        if code > 0 and code != STOPPED:
            return code
        # torchrun sends SIGTERM to all when one has failed
        if code < 0 and code != -signal.SIGTERM:
            return 128 - code
    return STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
