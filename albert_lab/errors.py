"""Exit codes, and the errors that a user can fix."""

# Of a process that a signal stopped, and whose work can be resumed.
INTERRUPTED = 130  # Ctrl-C
STOPPED = 75  # SIGTERM


class ConfigError(ValueError):
    """What a user wrote in a command or a file cannot be used. The command line exits with code 2."""


class MissingDataError(RuntimeError):
    """Text, a package or a file that a command needs is not there. The command line exits with code 4."""


# What a user can fix; the same command then resumes.
FIXABLE = (ConfigError, MissingDataError)
