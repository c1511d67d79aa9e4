-- The questions, for the newest schema. Newest first means by the slot that a row ends with, so that a stretch
-- stands where it has grown to. The columns of a history row are always these, in the order of HistoryRow.

-- name: newest_term
SELECT term, token, started_at, seen_until, ended_at, pid, ticks, boot, namespace
FROM terms
ORDER BY term DESC
LIMIT 1;

-- name: accounts
-- LEFT JOIN: a routine without a mark is damage, and no routine that nobody need hear of.
SELECT routine, schedule, timezone, jitter, enabled, description, meaning,
       accounted_until, relived_until, known_since_boot, reckoned_since, coalesce(rules, '')
FROM routines LEFT JOIN marks USING (routine) LEFT JOIN zones USING (timezone)
ORDER BY position;

-- name: open_fires
SELECT id, routine, slot, "trigger", term, token, claimed_at, attempt_started_at, attempts, log,
       history.pid, history.ticks, process_boot, history.namespace
FROM history JOIN terms USING (term)
WHERE outcome IS NULL
ORDER BY id;

-- name: accounted_in_boot
SELECT routine FROM routines
WHERE EXISTS (SELECT 1 FROM history WHERE history.routine = routines.routine AND boot = :boot);

-- name: standings
-- Each routine's last success and the slots since then that had none.
SELECT routines.routine, success.ended_at, success.slot,
       (SELECT coalesce(sum(later.count), 0)
        FROM history AS later
        WHERE later.routine = routines.routine
          AND later.until > coalesce(success.until, -9223372036854775808)
          AND later.request IS NULL
          AND later.outcome <> 'succeeded')
FROM routines
LEFT JOIN history AS success ON success.id = (
    SELECT id FROM history
    WHERE routine = routines.routine AND outcome = 'succeeded'
    ORDER BY until DESC, id DESC LIMIT 1);

-- name: newest_of_each
-- The newest :slots rows of slots, the newest row and the newest fire of each routine in force.
SELECT id, routine, slot, until, count, "trigger", outcome, reason, quiet, claimed_at, started_at, ended_at,
       exit_code, signal, attempts, term, log, request, blocked_by, detail
FROM history
WHERE id IN (
    SELECT newest.id FROM routines JOIN history AS newest ON newest.id IN (
        SELECT * FROM (SELECT id FROM history
                       WHERE routine = routines.routine AND outcome IS NOT NULL AND request IS NULL
                       ORDER BY until DESC, id DESC LIMIT :slots)
        UNION ALL
        SELECT * FROM (SELECT id FROM history
                       WHERE routine = routines.routine AND outcome IS NOT NULL
                       ORDER BY until DESC, id DESC LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT id FROM history
                       WHERE routine = routines.routine AND outcome IS NOT NULL AND claimed_at IS NOT NULL
                       ORDER BY until DESC, id DESC LIMIT 1)))
ORDER BY until DESC, id DESC;

-- name: history
SELECT id, routine, slot, until, count, "trigger", outcome, reason, quiet, claimed_at, started_at, ended_at,
       exit_code, signal, attempts, term, log, request, blocked_by, detail
FROM history
ORDER BY until DESC, id DESC
LIMIT :limit;

-- name: history_of_routine
SELECT id, routine, slot, until, count, "trigger", outcome, reason, quiet, claimed_at, started_at, ended_at,
       exit_code, signal, attempts, term, log, request, blocked_by, detail
FROM history
WHERE routine = :routine
ORDER BY until DESC, id DESC
LIMIT :limit;

-- name: row_of_request
SELECT id, routine, slot, until, count, "trigger", outcome, reason, quiet, claimed_at, started_at, ended_at,
       exit_code, signal, attempts, term, log, request, blocked_by, detail
FROM history
WHERE request = :request
ORDER BY id DESC
LIMIT 1;

-- name: row
SELECT id, routine, slot, until, count, "trigger", outcome, reason, quiet, claimed_at, started_at, ended_at,
       exit_code, signal, attempts, term, log, request, blocked_by, detail
FROM history
WHERE id = :fire;

-- name: doubled
-- Rows that cover what another row of the routine covers already: neighbours by their end, for wherever two rows
-- overlap, two neighbours do. NOT INDEXED: the indexes that refuse such rows may be what is broken.
SELECT routine, max(slot, before) FROM (
    SELECT routine, slot, until, lag(slot) OVER ends AS before, lag(until) OVER ends AS ended
    FROM history NOT INDEXED
    WHERE request IS NULL AND boot IS NULL
    WINDOW ends AS (PARTITION BY routine ORDER BY until))
WHERE slot <= ended
UNION ALL
SELECT routine, min(slot) FROM history NOT INDEXED WHERE boot IS NOT NULL GROUP BY routine, boot HAVING count(*) > 1
UNION ALL
SELECT routine, min(slot) FROM history NOT INDEXED
WHERE request IS NOT NULL
GROUP BY routine, request
HAVING count(*) > 1
LIMIT :limit;

-- name: covered
SELECT slot, until, count FROM history
WHERE routine = :routine AND until > :after AND request IS NULL AND boot IS NULL
ORDER BY until, slot;
