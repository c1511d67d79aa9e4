"""A program: APScheduler with COUNT jobs of one KIND, each running COMMAND; ends with its stdin.

    at SECONDS     once, at that time
    each SECONDS   every second from that time on
    daily HOUR     at that hour of the day

Imported by name at run time: the product's types are checked without the extra `bench`.
"""

import importlib
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any


def trigger_of(kind: str, when: str) -> dict[str, Any]:
    """What `add_job` wants for a kind of job."""
    if kind == "daily":
        return {"trigger": "cron", "hour": int(when)}
    moment = datetime.fromtimestamp(float(when), UTC)
    if kind == "at":
        return {"trigger": "date", "run_date": moment}
    return {"trigger": "interval", "seconds": 1, "start_date": moment}


def main(kind: str, when: str, count: int, command: list[str]) -> None:
    """Schedule, wait for the end of stdin, stop."""
    background = importlib.import_module("apscheduler.schedulers.background")
    pool = importlib.import_module("apscheduler.executors.pool")
    scheduler = background.BackgroundScheduler(
        executors={"default": pool.ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None},
        timezone="UTC",
    )
    for _ in range(count):
        scheduler.add_job(subprocess.run, args=[command], **trigger_of(kind, when))
    scheduler.start()
    print("started", flush=True)
    sys.stdin.read()
    scheduler.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
