-- What the owner writes. Each runs inside a transaction that has checked the term, `start` and `end` excepted.
-- Never INSERT OR IGNORE: it would swallow a broken CHECK as well. ON CONFLICT DO NOTHING swallows a taken key alone.

-- name: begin_term
INSERT INTO terms (term, token, pid, ticks, boot, namespace, started_at, seen_until)
VALUES (:term, :token, :pid, :ticks, :boot, :namespace, :now, :now);

-- name: end_term
UPDATE terms SET ended_at = :now, seen_until = :now
WHERE term = :term AND ended_at IS NULL AND term = (SELECT max(term) FROM terms);

-- name: see_term
UPDATE terms SET seen_until = :now WHERE term = :term;

-- name: newest_fire_number
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'history';

-- name: forget_fire_number
DELETE FROM sqlite_sequence WHERE name = 'history';

-- name: put_fire_number
INSERT INTO sqlite_sequence (name, seq) VALUES ('history', :number);

-- name: rules_of_zones
SELECT timezone, rules FROM zones;

-- name: reckon_anew
-- Rows up to the mark were reckoned by other rules of the zone.
UPDATE marks SET reckoned_since = max(accounted_until, coalesce(relived_until, accounted_until))
WHERE routine IN (SELECT routine FROM routines WHERE timezone = :timezone);

-- name: forget_zones
DELETE FROM zones;

-- name: put_zone
INSERT INTO zones (timezone, rules) VALUES (:timezone, :rules);

-- name: put_mark
-- The same schedule, in force and enabled before, keeps its mark; any other begins at :now. A mark that this
-- lowers (the clock was set back a little) leaves the slots up to the old one as relived: they may have rows.
-- Only behind those are all rows of the new schedule.
INSERT INTO marks (routine, accounted_until, relived_until, known_since_boot, reckoned_since)
VALUES (:routine, :now, NULL, :boot, :now)
ON CONFLICT (routine) DO UPDATE SET
    accounted_until = :now,
    relived_until = nullif(max(accounted_until, coalesce(relived_until, accounted_until), :now), :now),
    reckoned_since = max(accounted_until, coalesce(relived_until, accounted_until), :now),
    known_since_boot = :boot
WHERE NOT EXISTS (
    SELECT 1 FROM routines
    WHERE routine = :routine AND schedule = :schedule AND timezone = :timezone AND jitter = :jitter AND enabled);

-- name: forget_routines
DELETE FROM routines;

-- name: put_routine
INSERT INTO routines (routine, position, schedule, timezone, jitter, enabled, description, meaning)
VALUES (:routine, :position, :schedule, :timezone, :jitter, :enabled, :description, :meaning);

-- name: claim
-- Wins when the routine is in force and the key is free. The key of a slot is free when the slot lies above the
-- mark and in no row; that of a boot or a request when no row bears it, which the unique indexes say.
-- INDEXED BY: few rows end at or above a slot that is due, and nearly all begin below it.
INSERT INTO history (routine, slot, until, boot, request, "trigger", term, claimed_at)
SELECT routine, :slot, :slot, :boot, :request, :trigger, :term, :now
FROM routines JOIN marks USING (routine)
WHERE routine = :routine
  AND (:boot IS NOT NULL
       OR :request IS NOT NULL
       OR (:slot > accounted_until
           AND NOT EXISTS (SELECT 1 FROM history AS other INDEXED BY history_routine
                           WHERE other.routine = :routine AND other.until >= :slot AND other.slot <= :slot
                             AND other.request IS NULL AND other.boot IS NULL)))
ON CONFLICT DO NOTHING;

-- name: rows_met
-- The rows that hold slots of the stretch :slot to :until, in their order.
SELECT slot, until, count FROM history INDEXED BY history_routine
WHERE routine = :routine AND until >= :slot AND slot <= :until AND request IS NULL AND boot IS NULL
ORDER BY until;

-- name: grow
-- Only the row right before it can be continued: one of another kind in between stands in the way.
UPDATE history SET until = :until, count = count + :count, ended_at = :now
WHERE id = (SELECT id FROM history
            WHERE routine = :routine AND until < :slot
            ORDER BY until DESC, id DESC LIMIT 1)
  AND outcome = :outcome AND reason IS :reason AND "trigger" = :trigger AND blocked_by IS :blocked_by
  AND term = :term AND claimed_at IS NULL AND request IS NULL AND boot IS NULL;

-- name: enter
INSERT INTO history (routine, slot, until, count, boot, request, "trigger", term, blocked_by, outcome, reason, ended_at)
VALUES (:routine, :slot, :until, :count, :boot, :request, :trigger, :term, :blocked_by, :outcome, :reason, :now)
ON CONFLICT DO NOTHING;

-- name: raise_mark
UPDATE marks SET
    accounted_until = :mark,
    relived_until = CASE WHEN relived_until > :mark THEN relived_until END
WHERE routine = :routine AND accounted_until < :mark;

-- name: lower_marks
UPDATE marks SET
    accounted_until = :to,
    relived_until = max(accounted_until, coalesce(relived_until, accounted_until)),
    reckoned_since = max(accounted_until, coalesce(relived_until, accounted_until))
WHERE accounted_until > :to;

-- name: clock_rows_above
SELECT id, routine, slot FROM history
WHERE until > :to AND outcome = 'missed' AND reason = 'clock' AND request IS NULL AND boot IS NULL;

-- name: cut
UPDATE history SET until = :until, count = :count WHERE id = :fire;

-- name: forget
DELETE FROM history WHERE id = :fire;

-- name: start
UPDATE history SET
    started_at = coalesce(started_at, :started_at), attempt_started_at = :started_at, attempts = :attempt,
    pid = :pid, ticks = :ticks, process_boot = :boot, namespace = :namespace, log = :log
WHERE id = :fire AND outcome IS NULL AND attempts < :attempt;

-- name: end
UPDATE history SET
    outcome = :outcome, reason = :reason, ended_at = :ended_at, exit_code = :exit_code, signal = :signal,
    quiet = :quiet, detail = :detail
WHERE id = :fire AND outcome IS NULL;

-- name: prune
-- A row below the mark is safe to forget: its slot can never be claimed again. A request is asked once, so its
-- row needs no mark; a boot's row guards its key for as long as that boot lasts. Routines out of force keep
-- their mark, so theirs go too.
DELETE FROM history
WHERE until < :before
  AND outcome IS NOT NULL
  AND CASE
          WHEN request IS NOT NULL THEN 1
          WHEN boot IS NOT NULL THEN boot <> (SELECT boot FROM terms ORDER BY term DESC LIMIT 1)
          ELSE until < (SELECT accounted_until FROM marks WHERE marks.routine = history.routine)
      END
  AND id NOT IN (
      SELECT newest.id FROM marks JOIN history AS newest ON newest.id = (
          SELECT id FROM history WHERE routine = marks.routine
          ORDER BY until DESC, id DESC LIMIT 1))
  AND id NOT IN (
      SELECT success.id FROM marks JOIN history AS success ON success.id = (
          SELECT id FROM history WHERE routine = marks.routine AND outcome = 'succeeded'
          ORDER BY until DESC, id DESC LIMIT 1));

-- name: prune_marks
-- What ends at or behind both, in one row or another, is still there.
UPDATE marks SET reckoned_since = min(:before, accounted_until)
WHERE reckoned_since < min(:before, accounted_until);

-- name: prune_terms
DELETE FROM terms
WHERE seen_until < :before
  AND term < (SELECT max(term) FROM terms)
  AND term NOT IN (SELECT term FROM history);
