"""Files of routines as people have them, many at once, with nothing due for a day or more."""

import time
from itertools import islice, product
from typing import Final

from ankita_agent.core.cron import WEEKDAYS

ZONES: Final = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Auckland",
    "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tokyo", "America/St_Johns",
)  # fmt: skip

SCHEDULES: Final = (
    "* * * * *", "*/5 * * * *", "30 8 * * *", "0 0 1 1 *", "15 3 * * sun", "0 9-17 * * mon-fri", "30 2 L * *",
    "0 12 13 * fri", "5,35 */2 * * *", "0 0 29 2 *", "0 8 * * mon#1", "45 23 * 6 5L", "weekdays 08:30",
    "daily 02:30", "every 90s", "every 7d", "@hourly", "@monthly",
)  # fmt: skip


def sleeping_file(count: int) -> str:
    """`count` routines in many zones, each due once a week, two to five days from now in every zone."""
    today = time.gmtime().tm_wday + 1  # of WEEKDAYS, which begin with Sunday
    days = [WEEKDAYS[(today + ahead) % 7] for ahead in (2, 3, 4)]
    every = product(range(24), range(0, 60, 3), days, ZONES)
    lines = (
        f"  routine-{number:05}: {{schedule: '{minute} {hour} * * {day}', timezone: {zone}, run: 'echo {number}'}}\n"
        for number, (hour, minute, day, zone) in enumerate(islice(every, count))
    )
    return "routines:\n" + "".join(lines)
