"""The delay of a routine on a machine: spread out over machines, the same every time."""

from ankita_agent.core.instants import MILLISECOND, Duration


def delay_of(machine: str, routine: str, bound: Duration) -> Duration:
    """How much later than its slot a routine starts here: from zero to less than `bound`, whole milliseconds.

    The same for the same three in every process and version: taken from SHA-256, not from `hash()`, which
    Python salts anew for each process. A bound of zero gives zero.
    """
    choices = -(-bound // MILLISECOND)
    if choices <= 0:
        return Duration(0)
    import hashlib  # here, because it brings 3 MB of OpenSSL into every agent, and few routines have a jitter

    digest = hashlib.sha256(f"{machine}\0{routine}".encode()).digest()
    return Duration(int.from_bytes(digest) % choices * MILLISECOND)
