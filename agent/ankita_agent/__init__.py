"""ankita-agent: a user's own scheduler of routines that can never double-fire."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ankita-agent")
except PackageNotFoundError:  # run straight from a source tree that nobody installed
    __version__ = "0+unknown"
