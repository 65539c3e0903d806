"""Exit codes, and the errors that a user can fix."""

from pathlib import Path

# Of a process that a signal stopped, and whose work can be resumed.
INTERRUPTED = 130  # Ctrl-C
STOPPED = 75  # SIGTERM


class ConfigError(ValueError):
    """What a user wrote in a command or a file cannot be used. The command line exits with code 2."""


class DamagedFileError(ConfigError):
    """A file that this package wrote, or that it reads in a form of its own, cannot be read.

    Attributes:
        file: which one.
        problem: what is wrong with it, and where in it.
        remedy: what the user can do; empty where there is nothing but to correct the file.
    """

    def __init__(self, file: Path, problem: str, remedy: str = "") -> None:
        super().__init__(f"{file}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.file, self.problem, self.remedy = file, problem, remedy

    def __reduce__(self) -> tuple[type["DamagedFileError"], tuple[Path, str, str]]:
        return type(self), (self.file, self.problem, self.remedy)  # it comes out of worker processes too


class MissingDataError(RuntimeError):
    """Text, a package or a file that a command needs is not there. The command line exits with code 4."""


class LostProcessError(RuntimeError):
    """Another process that helps to make the run is gone: no failure of the run. Its process ends with code 75."""


class WriteError(RuntimeError):
    """A file could not be written: the disk is full, or fails. The command line exits with code 1."""


# What a user can fix; the same command then resumes.
FIXABLE = (ConfigError, MissingDataError)
