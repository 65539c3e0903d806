"""Exit codes, and the errors that a user can fix."""

import errno
from pathlib import Path

# Exit codes of a process whose work can be resumed: a signal stopped it, or the disk was full.
INTERRUPTED = 130  # Ctrl-C
STOPPED = 75  # SIGTERM
UNWRITTEN = 74  # no failure of the run
# The disk, or the user's part of it, is full or fails.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class ConfigError(ValueError):
    """An invalid command or file of the user. The command line exits with code 2."""


class DamagedFileError(ConfigError):
    """A file that this package wrote, or a file in one of its formats, cannot be read.

    It is made from the file, the problem, and advice for the user, if the remedy is not to correct
    the file.
    """

    def __init__(self, file: Path, problem: str, remedy: str = "") -> None:
        super().__init__(f"{file}: {problem}" + f"; {remedy}" * bool(remedy))


class MissingDataError(RuntimeError):
    """Text, a package or a file that a command needs does not exist. The command line exits with
    code 4.
    """


class LostProcessError(RuntimeError):
    """Another process of the run ended, which is not a failure of the run. This process exits with
    code 75.
    """


# Errors that a user can fix, then the same command resumes; and those of them that the system
# finds.
FIXABLE = (ConfigError, MissingDataError)
REFUSED = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
)


def is_full(error: BaseException) -> bool:
    """Whether something could not be written since the disk is full or fails."""
    return isinstance(error, OSError) and error.errno in _FULL
