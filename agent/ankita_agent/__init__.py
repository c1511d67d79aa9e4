"""ankita-agent: a user's own scheduler of routines that can never double-fire."""

# Not asked of importlib.metadata: that takes 20 ms of every command and 3 MB of an agent.
__version__ = "0.1.0"
