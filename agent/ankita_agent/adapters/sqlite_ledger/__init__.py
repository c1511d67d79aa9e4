"""The ledger on SQLite: `ports.ledger`, its files, its versions.

Reading order: schema.sql, owner.py with owning.sql, reader.py with reading.sql, connection.py, versions.py.
"""

from ankita_agent.adapters.sqlite_ledger.connection import memory_ledger, open_owner, open_reader
from ankita_agent.adapters.sqlite_ledger.disk import set_aside
from ankita_agent.adapters.sqlite_ledger.owner import SqliteLedger
from ankita_agent.adapters.sqlite_ledger.reader import SqliteLedgerReader

__all__ = ["SqliteLedger", "SqliteLedgerReader", "memory_ledger", "open_owner", "open_reader", "set_aside"]
