-- From where on the rows of a routine are those of its present schedule by the present rules of its zone, and none of
-- them was pruned, so that they can be held against it. Of marks from before, that is known from now on.

ALTER TABLE marks ADD COLUMN reckoned_since INTEGER NOT NULL DEFAULT 0;

UPDATE marks SET reckoned_since = max(accounted_until, coalesce(relived_until, accounted_until));

-- The rules by which the owner reckons, for the zones of the routines in force: years, then each change of the offset.
CREATE TABLE zones (
    timezone  TEXT PRIMARY KEY,
    rules     TEXT NOT NULL
) WITHOUT ROWID;
