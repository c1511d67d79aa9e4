-- From where on the rows of a routine are those of its present schedule alone, so that they can be counted against it.
-- Of marks from before, that is known from now on.

ALTER TABLE marks ADD COLUMN reckoned_since INTEGER NOT NULL DEFAULT 0;

UPDATE marks SET reckoned_since = max(accounted_until, coalesce(relived_until, accounted_until));
