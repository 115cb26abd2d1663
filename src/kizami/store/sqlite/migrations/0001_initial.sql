-- Times named *_at are wall-clock epoch milliseconds. Times named *_boot are milliseconds of the boot clock and mean
-- something only together with boot_id: after a reboot every silence, claim and lease of the old boot has ended.

-- Which database this is. Two of them may serve one app in one workspace, such as those of staging and production; what
-- they post carries this id, so that neither takes the other's messages for its own. A copy of the file keeps it.
CREATE TABLE kizami_identity (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  database_id TEXT NOT NULL
) STRICT;

INSERT INTO kizami_identity (one, database_id) VALUES (1, lower(hex(randomblob(8))));

CREATE TABLE kizami_workers (
  worker_id     TEXT PRIMARY KEY,
  app           TEXT NOT NULL,
  host          TEXT NOT NULL,
  boot_id       TEXT NOT NULL,
  pid_namespace TEXT NOT NULL,
  pid           INTEGER NOT NULL,
  started       TEXT NOT NULL,
  bindings      TEXT NOT NULL CHECK (json_valid(bindings)),
  started_at    INTEGER NOT NULL,
  seen_at       INTEGER NOT NULL,
  note          TEXT,
  seen_boot     INTEGER NOT NULL,
  edition       INTEGER
) STRICT, WITHOUT ROWID;

-- The editions of an app's code, that is its schedules all together, numbered in the order in which they first ran.
CREATE TABLE kizami_editions (
  app          TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  number       INTEGER NOT NULL,
  first_run_at INTEGER NOT NULL,
  in_force     INTEGER NOT NULL DEFAULT 0 CHECK (in_force IN (0, 1)),
  PRIMARY KEY (app, fingerprint)
) STRICT, WITHOUT ROWID;

-- What code declares of each binding, and what operators lay over it.
CREATE TABLE kizami_bindings (
  app                      TEXT NOT NULL,
  name                     TEXT NOT NULL,
  shards                   INTEGER NOT NULL CHECK (shards >= 1),
  requires_concurrency_key INTEGER NOT NULL,
  requires_unique_key      INTEGER NOT NULL,
  payload_schema           TEXT,
  policy                   TEXT NOT NULL CHECK (json_valid(policy)),
  override                 TEXT CHECK (override IS NULL OR json_valid(override)),
  completed_ms             INTEGER NOT NULL,
  failed_ms                INTEGER NOT NULL,
  paused_at                INTEGER,
  declared_at              INTEGER NOT NULL,
  PRIMARY KEY (app, name)
) STRICT, WITHOUT ROWID;

-- One row per binding and shard, never removed: jobs and their indexes carry its short number. The bucket_* columns are
-- the token bucket as it stood at bucket_at of the boot clock. rekey_after: up to which job key a changed policy has
-- been worked into the outstanding jobs (NULL: into all). removed_until_at: the youngest job that retention removed.
CREATE TABLE kizami_shards (
  shard_key          INTEGER PRIMARY KEY,
  app                TEXT NOT NULL,
  binding            TEXT NOT NULL,
  shard              INTEGER NOT NULL,
  bucket_tokens      INTEGER,
  bucket_interval_ms INTEGER,
  bucket_level       INTEGER,
  bucket_at          INTEGER,
  bucket_clock_id    TEXT,
  rekey_after        INTEGER,
  removed_until_at   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (app, binding, shard),
  FOREIGN KEY (app, binding) REFERENCES kizami_bindings (app, name)
) STRICT;

-- The last job key given out: epoch ms << 20 | counter, so keys sort by time; they only grow, also when the clock is
-- set back or the youngest jobs are removed, so a late report of a removed job can't land on a younger one.
CREATE TABLE kizami_last_key (
  id  INTEGER PRIMARY KEY CHECK (id = 1),
  key INTEGER NOT NULL
) STRICT;

INSERT INTO kizami_last_key (id, key) VALUES (1, 0);

-- The CHECKs are written with OR: SQLite builds a table for each IN of more than two values, at every row.
-- pile: waiting (not yet due), ready, or blocked (its concurrency_key was full when a claim met it). A job's place in
-- the order is (rank, order_key, key), see Policy.place.
CREATE TABLE kizami_jobs (
  key              INTEGER PRIMARY KEY,
  shard_key        INTEGER NOT NULL REFERENCES kizami_shards (shard_key),
  local_id         TEXT NOT NULL,
  state            TEXT NOT NULL CHECK (
    state = 'SCHEDULED' OR state = 'QUEUED' OR state = 'COMPLETED' OR state = 'RUNNING' OR state = 'FAILED'
    OR state = 'CANCELLED' OR state = 'STALLED'
  ),
  pile             TEXT CHECK (pile = 'ready' OR pile = 'waiting' OR pile = 'blocked'),
  priority         INTEGER NOT NULL,
  rank             INTEGER NOT NULL,
  order_key        INTEGER NOT NULL,
  due_at           INTEGER NOT NULL,
  first_due_at     INTEGER NOT NULL,
  concurrency_key  TEXT,
  unique_key       TEXT,
  partition_key    TEXT,
  claim            INTEGER NOT NULL DEFAULT 0,
  attempt          INTEGER NOT NULL DEFAULT 0,
  attempts_allowed INTEGER NOT NULL,
  retries          INTEGER NOT NULL DEFAULT 0,
  snoozes          INTEGER NOT NULL DEFAULT 0,
  max_attempts     INTEGER NOT NULL,
  guarantee        TEXT NOT NULL CHECK (guarantee IN ('at-least-once', 'at-most-once')),
  timeout_ms       INTEGER NOT NULL,
  backoff          TEXT,
  worker_id        TEXT,
  boot_id          TEXT,
  alive_until_boot INTEGER,
  grace_ms         INTEGER NOT NULL DEFAULT 0,
  started_at       INTEGER,
  ended_at         INTEGER,
  progress         REAL,
  schedule         TEXT,
  scheduled_at     INTEGER,
  manual           INTEGER NOT NULL DEFAULT 0,
  lease            TEXT,
  result_note      TEXT,
  error            TEXT,
  result           TEXT,
  payload          TEXT NOT NULL,
  CHECK ((state = 'SCHEDULED') = (pile IS NOT NULL)),
  CHECK ((state IN ('QUEUED', 'RUNNING')) = (worker_id IS NOT NULL))
) STRICT;

-- The key ends every index by itself, as the row's number. Two indexes for the ended ones: each retention time finds its
-- own at the front.
CREATE UNIQUE INDEX kizami_jobs_identity ON kizami_jobs (shard_key, local_id);
CREATE INDEX kizami_jobs_ready    ON kizami_jobs (shard_key, rank, order_key) WHERE pile = 'ready';
CREATE INDEX kizami_jobs_waiting  ON kizami_jobs (shard_key, due_at) WHERE pile = 'waiting';
CREATE INDEX kizami_jobs_blocked  ON kizami_jobs (shard_key, concurrency_key, rank, order_key) WHERE pile = 'blocked';
CREATE INDEX kizami_jobs_active   ON kizami_jobs (shard_key, concurrency_key) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX kizami_jobs_done     ON kizami_jobs (shard_key, ended_at) WHERE state IN ('COMPLETED', 'CANCELLED');
CREATE INDEX kizami_jobs_broken   ON kizami_jobs (shard_key, ended_at) WHERE state IN ('FAILED', 'STALLED');
CREATE INDEX kizami_jobs_created  ON kizami_jobs (shard_key);
CREATE INDEX kizami_jobs_keyed    ON kizami_jobs (shard_key, concurrency_key) WHERE concurrency_key <> '';
CREATE INDEX kizami_jobs_unique   ON kizami_jobs (shard_key, unique_key) WHERE unique_key <> '';
CREATE INDEX kizami_jobs_schedule ON kizami_jobs (schedule, shard_key) WHERE schedule IS NOT NULL;

-- Which job has a unique_key, and until when; outlives the job. shard_key is where an enqueue looks: it moves when the
-- number of shards changes, the job stays in job_shard_key.
CREATE TABLE kizami_reservations (
  shard_key     INTEGER NOT NULL REFERENCES kizami_shards (shard_key),
  unique_key    TEXT NOT NULL,
  job_shard_key INTEGER NOT NULL REFERENCES kizami_shards (shard_key),
  local_id      TEXT NOT NULL,
  until_at      INTEGER NOT NULL,
  PRIMARY KEY (shard_key, unique_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX kizami_reservations_until ON kizami_reservations (until_at);

-- How many jobs each shard has in each state and pile ('' outside of SCHEDULED), kept in the transaction of each move.
CREATE TABLE kizami_counts (
  shard_key INTEGER NOT NULL REFERENCES kizami_shards (shard_key),
  state     TEXT NOT NULL,
  pile      TEXT NOT NULL,
  n         INTEGER NOT NULL,
  PRIMARY KEY (shard_key, state, pile)
) STRICT, WITHOUT ROWID;

CREATE TABLE kizami_attempts (
  job_key    INTEGER NOT NULL REFERENCES kizami_jobs (key) ON DELETE CASCADE,
  number     INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  claim      INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  error      TEXT,
  worker_id  TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  PRIMARY KEY (job_key, number)
) STRICT, WITHOUT ROWID;

-- zone_data: the edition of the time-zone database by which planned_at was made. settled_local: the local time up to which
-- ticks are settled, as epoch ms of that clock, so that none fires twice when the rules of its zone change.
CREATE TABLE kizami_schedules (
  app                TEXT NOT NULL,
  name               TEXT NOT NULL,
  version            INTEGER NOT NULL,
  fingerprint        TEXT NOT NULL,
  timing             TEXT NOT NULL CHECK (json_valid(timing)),
  timing_fingerprint TEXT NOT NULL,
  binding            TEXT NOT NULL,
  overlap            TEXT NOT NULL CHECK (overlap IN ('skip', 'overlap')),
  driver             TEXT NOT NULL CHECK (driver IN ('inner', 'external')),
  lease              TEXT,
  description        TEXT NOT NULL,
  zone_data          TEXT,
  anchor_at          INTEGER NOT NULL,
  planned_at         INTEGER,
  settled_at         INTEGER,
  settled_local      INTEGER,
  last_planned_at    INTEGER,
  last_fired_at      INTEGER,
  last_job_id        TEXT,
  last_job_key       INTEGER,
  fired_count        INTEGER NOT NULL DEFAULT 0,
  skipped_count      INTEGER NOT NULL DEFAULT 0,
  skipped_at         INTEGER,
  missed_count       INTEGER NOT NULL DEFAULT 0,
  failed_count       INTEGER NOT NULL DEFAULT 0,
  last_error         TEXT,
  last_error_at      INTEGER,
  manual_sequence    INTEGER NOT NULL DEFAULT 0,
  paused_at          INTEGER,
  registered_at      INTEGER NOT NULL,
  removed_at         INTEGER,
  PRIMARY KEY (app, name)
) STRICT, WITHOUT ROWID;

-- Every definition that a schedule has had, with the version under which it was last in force; '' means removed.
CREATE TABLE kizami_definitions (
  app         TEXT NOT NULL,
  schedule    TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  version     INTEGER NOT NULL,
  PRIMARY KEY (app, schedule, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE INDEX kizami_schedules_due ON kizami_schedules (app, planned_at)
  WHERE planned_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL;

-- The fire ledger. A planned instant has one row, whoever asked for it: this index is what makes a tick fire once.
CREATE TABLE kizami_fires (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  app             TEXT NOT NULL,
  schedule        TEXT NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('planned', 'external', 'manual')),
  outcome         TEXT NOT NULL,
  planned_at      INTEGER NOT NULL,
  planned_last_at INTEGER NOT NULL,
  count           INTEGER NOT NULL,
  acted_at        INTEGER NOT NULL,
  by              TEXT NOT NULL,
  job_id          TEXT,
  reason          TEXT,
  version         INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX kizami_fires_once ON kizami_fires (app, schedule, planned_at) WHERE kind <> 'manual';
CREATE INDEX kizami_fires_schedule ON kizami_fires (app, schedule, id);
CREATE INDEX kizami_fires_app ON kizami_fires (app, id);

CREATE TABLE kizami_leases (
  app            TEXT NOT NULL,
  name           TEXT NOT NULL,
  run_id         TEXT,
  holder         TEXT,
  worker_id      TEXT,
  started_at     INTEGER,
  heartbeat_at   INTEGER,
  heartbeat_boot INTEGER,
  boot_id        TEXT,
  PRIMARY KEY (app, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE kizami_deliveries (
  seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
  app                 TEXT NOT NULL,
  channel             TEXT NOT NULL,
  item                TEXT NOT NULL,
  content             TEXT NOT NULL CHECK (json_valid(content)),
  due                 TEXT NOT NULL,
  created_at          INTEGER NOT NULL,
  delivered_at        INTEGER,
  posted_channel      TEXT,
  ts                  TEXT,
  attempts            INTEGER NOT NULL DEFAULT 0,
  claim_token         TEXT,
  claim_worker        TEXT,
  claim_expires_boot  INTEGER,
  claim_boot_id       TEXT,
  set_aside_at        INTEGER,
  note                TEXT,
  possible_duplicates INTEGER NOT NULL DEFAULT 0,
  state               TEXT AS (CASE
    WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN set_aside_at IS NOT NULL THEN 'set_aside' ELSE 'owed'
  END) VIRTUAL,
  CHECK ((delivered_at IS NULL) = (ts IS NULL)),
  UNIQUE (app, channel, item)
) STRICT;

CREATE INDEX kizami_deliveries_owed ON kizami_deliveries (app, channel, due, seq)
  WHERE delivered_at IS NULL AND set_aside_at IS NULL;
CREATE INDEX kizami_deliveries_claimed  ON kizami_deliveries (claim_worker) WHERE claim_worker IS NOT NULL;
CREATE INDEX kizami_deliveries_all      ON kizami_deliveries (app, seq);
CREATE INDEX kizami_deliveries_channel  ON kizami_deliveries (app, channel, seq);
CREATE INDEX kizami_deliveries_by_state ON kizami_deliveries (app, state, seq);
CREATE INDEX kizami_deliveries_in_state ON kizami_deliveries (app, channel, state, seq);

-- How many deliveries each channel has in each state. In doubt are those of the owed ones with an unsettled intent,
-- which are few and counted when asked.
CREATE TABLE kizami_delivery_counts (
  app     TEXT NOT NULL,
  channel TEXT NOT NULL,
  state   TEXT NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY (app, channel, state)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER kizami_deliveries_added AFTER INSERT ON kizami_deliveries BEGIN
  INSERT INTO kizami_delivery_counts (app, channel, state, n) VALUES (new.app, new.channel, new.state, 1)
  ON CONFLICT (app, channel, state) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER kizami_deliveries_moved AFTER UPDATE ON kizami_deliveries WHEN old.state <> new.state BEGIN
  UPDATE kizami_delivery_counts SET n = n - 1
  WHERE app = old.app AND channel = old.channel AND state = old.state;
  INSERT INTO kizami_delivery_counts (app, channel, state, n) VALUES (new.app, new.channel, new.state, 1)
  ON CONFLICT (app, channel, state) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER kizami_deliveries_removed AFTER DELETE ON kizami_deliveries BEGIN
  UPDATE kizami_delivery_counts SET n = n - 1
  WHERE app = old.app AND channel = old.channel AND state = old.state;
END;

-- What was about to be posted, committed before the call. An intent without settled_at is in doubt. attempted_at is our
-- clock's, for people; slack_at is what Slack's clock showed at least by then, for looking through its history.
CREATE TABLE kizami_intents (
  app          TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('delivery', 'board')),
  channel      TEXT NOT NULL,
  item         TEXT NOT NULL,
  attempt      INTEGER NOT NULL,
  attempted_at INTEGER NOT NULL,
  slack_at     INTEGER,
  settled_at   INTEGER,
  note         TEXT,
  PRIMARY KEY (app, kind, channel, item, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX kizami_intents_unsettled ON kizami_intents (app, kind, channel, item) WHERE settled_at IS NULL;
CREATE INDEX kizami_intents_settled   ON kizami_intents (app, settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE kizami_boards (
  app                 TEXT NOT NULL,
  name                TEXT NOT NULL,
  channel             TEXT NOT NULL,
  posted_channel      TEXT,
  ts                  TEXT,
  synced_at           INTEGER,
  content_hash        TEXT,
  posted_at           INTEGER,
  edited_at           INTEGER,
  posts               INTEGER NOT NULL DEFAULT 0,
  edits               INTEGER NOT NULL DEFAULT 0,
  attempts            INTEGER NOT NULL DEFAULT 0,
  claim_token         TEXT,
  claim_worker        TEXT,
  claim_expires_boot  INTEGER,
  claim_boot_id       TEXT,
  note                TEXT,
  off_at              INTEGER,
  aimed_at            INTEGER,
  replaced_at         INTEGER,
  parked_hash         TEXT,
  possible_duplicates INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (app, name, channel)
) STRICT, WITHOUT ROWID;

CREATE INDEX kizami_boards_claimed ON kizami_boards (claim_worker) WHERE claim_worker IS NOT NULL;

CREATE TABLE kizami_gates (
  app         TEXT NOT NULL,
  method      TEXT NOT NULL,
  channel     TEXT NOT NULL,
  closed_at   INTEGER NOT NULL,
  until_at    INTEGER NOT NULL,
  until_boot  INTEGER NOT NULL,
  boot_id     TEXT NOT NULL,
  reason      TEXT NOT NULL,
  PRIMARY KEY (app, method, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE kizami_cursors (
  app      TEXT NOT NULL,
  name     TEXT NOT NULL,
  position TEXT NOT NULL CHECK (json_valid(position)),
  moved_at INTEGER NOT NULL,
  PRIMARY KEY (app, name)
) STRICT, WITHOUT ROWID;
