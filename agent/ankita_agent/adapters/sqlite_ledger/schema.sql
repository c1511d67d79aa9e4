-- The ledger as the newest version has it, whole, for reading. It is never run by the agent: the files in
-- migrations/ are, and tests/unit/test_ledger_versions.py holds that both give the same database.
--
-- Instants are nanoseconds since 1970 (UTC); `SELECT * FROM readable` shows them as text. Plain SQL for SQLite
-- 3.34 and later: no STRICT tables and no RETURNING, which the SQLite of some long-lived systems lacks.

PRAGMA application_id = 0x616e6b69;  -- "anki", shown by file(1)

-- One row per ownership. The newest one is the only one that may claim.
CREATE TABLE terms (
    term        INTEGER PRIMARY KEY,
    token       TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    ticks       INTEGER NOT NULL,
    boot        TEXT NOT NULL,
    namespace   INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_until  INTEGER NOT NULL,
    ended_at    INTEGER  -- NULL: still owns, or ended without saying so
);

-- The routines in force, in the order of their file.
CREATE TABLE routines (
    routine      TEXT PRIMARY KEY,
    position     INTEGER NOT NULL,
    schedule     TEXT NOT NULL,
    timezone     TEXT NOT NULL,
    jitter       INTEGER NOT NULL,
    enabled      INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    description  TEXT NOT NULL,
    meaning      TEXT NOT NULL
);

-- How far the slots of a routine are accounted for. Apart from `routines` because every pass moves marks, and
-- because the mark of a routine that left stays.
CREATE TABLE marks (
    routine           TEXT PRIMARY KEY,
    accounted_until   INTEGER NOT NULL,
    relived_until     INTEGER,  -- up to here rows may stand above the mark: the clock was set back
    known_since_boot  TEXT NOT NULL,
    reckoned_since    INTEGER NOT NULL DEFAULT 0  -- from here on its rows are all there, and of its present schedule
) WITHOUT ROWID;

-- The rules by which the owner reckons, for the zones of the routines in force: years, then each change of the offset.
CREATE TABLE zones (
    timezone  TEXT PRIMARY KEY,
    rules     TEXT NOT NULL
) WITHOUT ROWID;

-- One row per slot, per stretch of slots that ended alike, per manual request, or per boot of an @reboot.
-- A fire is a row with `claimed_at`. AUTOINCREMENT: the number of a fire is never given to another one.
CREATE TABLE history (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    routine             TEXT NOT NULL,
    slot                INTEGER NOT NULL,
    until               INTEGER NOT NULL,
    count               INTEGER NOT NULL DEFAULT 1,
    boot                TEXT,
    request             TEXT,
    "trigger"           TEXT NOT NULL CHECK ("trigger" IN ('schedule', 'catch_up', 'manual', 'retry')),
    term                INTEGER NOT NULL,
    blocked_by          INTEGER,
    claimed_at          INTEGER,
    attempts            INTEGER NOT NULL DEFAULT 0,
    started_at          INTEGER,  -- of the first attempt
    attempt_started_at  INTEGER,  -- of the newest one, whose process and log these are
    pid                 INTEGER,
    ticks               INTEGER,
    process_boot        TEXT,
    namespace           INTEGER,
    log                 TEXT,
    outcome             TEXT,
    reason              TEXT,
    quiet               INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    ended_at            INTEGER,
    exit_code           INTEGER CHECK (exit_code BETWEEN 0 AND 255),
    signal              INTEGER CHECK (signal > 0),
    detail              TEXT NOT NULL DEFAULT '',

    CONSTRAINT stretch CHECK (count > 0 AND until >= slot AND (count = 1) = (until = slot)),
    CONSTRAINT one_key CHECK (boot IS NULL OR request IS NULL),
    CONSTRAINT only_slots_stretch CHECK (count = 1 OR (boot IS NULL AND request IS NULL AND claimed_at IS NULL)),
    CONSTRAINT open_is_a_fire CHECK (outcome IS NOT NULL OR claimed_at IS NOT NULL),
    CONSTRAINT ended CHECK ((outcome IS NULL) = (ended_at IS NULL)),
    CONSTRAINT one_status CHECK (exit_code IS NULL OR signal IS NULL),
    CONSTRAINT quiet_success CHECK (quiet = 0 OR outcome IS 'succeeded'),
    -- `x IN (...)` is NULL for a NULL, and a CHECK lets NULL pass; hence IS TRUE.
    CONSTRAINT outcome_and_reason CHECK (
        CASE outcome
            WHEN 'succeeded' THEN reason IS NULL
            WHEN 'failed' THEN (reason IN ('exit_status', 'killed', 'spawn')) IS TRUE
            WHEN 'timed_out' THEN reason IS 'timeout'
            WHEN 'stopped' THEN (reason IN ('asked_to_stop', 'shutdown', 'fenced')) IS TRUE
            WHEN 'skipped' THEN (reason IN ('overlap', 'paused', 'condition', 'locked', 'elsewhere',
                                            'lease_unavailable', 'budget', 'superseded', 'asked')) IS TRUE
            WHEN 'missed' THEN (reason IN ('asleep', 'off', 'not_running', 'grace', 'clock', 'ledger')) IS TRUE
            WHEN 'lost' THEN (reason IN ('owner_killed', 'status_unknown')) IS TRUE
            ELSE outcome IS NULL AND reason IS NULL
        END
    )
);

-- These three are the promise of at most one fire: one row per slot, per boot, per request.
CREATE UNIQUE INDEX history_slot ON history (routine, slot) WHERE request IS NULL AND boot IS NULL;
CREATE UNIQUE INDEX history_boot ON history (routine, boot) WHERE boot IS NOT NULL;
CREATE UNIQUE INDEX history_request ON history (request, routine) WHERE request IS NOT NULL;

CREATE INDEX history_time ON history (until);
CREATE INDEX history_routine ON history (routine, until);
CREATE INDEX history_success ON history (routine, until) WHERE outcome = 'succeeded';
CREATE INDEX history_open ON history (id) WHERE outcome IS NULL;

-- For people who open the file with sqlite3.
CREATE VIEW readable AS
SELECT id AS fire,
       routine,
       strftime('%Y-%m-%dT%H:%M:%SZ', slot / 1000000000, 'unixepoch') AS slot,
       CASE WHEN count > 1 THEN strftime('%Y-%m-%dT%H:%M:%SZ', until / 1000000000, 'unixepoch') END AS until,
       count,
       "trigger",
       coalesce(outcome, CASE WHEN started_at IS NULL THEN 'claimed' ELSE 'running' END) AS outcome,
       reason,
       strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000000, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%SZ', ended_at / 1000000000, 'unixepoch') AS ended_at,
       exit_code,
       signal,
       attempts,
       blocked_by,
       term,
       log,
       detail
FROM history
ORDER BY history.until DESC, id DESC;
