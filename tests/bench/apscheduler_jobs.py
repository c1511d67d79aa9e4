"""A program: APScheduler with COUNT jobs at the instant DUE, each running COMMAND; ends with its stdin.

Imported by name at run time: the product's types are checked without the extra `bench`.
"""

import importlib
import subprocess
import sys

from ankita_agent.core.instants import Instant, utc_datetime


def main(due: Instant, count: int, command: list[str]) -> None:
    """Schedule, wait for the end of stdin, stop."""
    background = importlib.import_module("apscheduler.schedulers.background")
    pool = importlib.import_module("apscheduler.executors.pool")
    scheduler = background.BackgroundScheduler(
        executors={"default": pool.ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None},
        timezone="UTC",
    )
    for _ in range(count):
        scheduler.add_job(subprocess.run, "date", args=[command], run_date=utc_datetime(due))
    scheduler.start()
    sys.stdin.read()
    scheduler.shutdown()


if __name__ == "__main__":
    main(Instant(int(sys.argv[1])), int(sys.argv[2]), sys.argv[3:])
