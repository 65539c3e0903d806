"""The two mistakes that are the user's to mend, each with its own exit code."""


class ConfigError(ValueError):
    """What a user wrote in a command or a file cannot be used. The command line exits with code 2."""


class MissingDataError(RuntimeError):
    """Text, a package or a file that a command needs is not there. The command line exits with code 4."""


# The two, to be caught together: once they are mended, the same command goes on.
MENDABLE = (ConfigError, MissingDataError)
