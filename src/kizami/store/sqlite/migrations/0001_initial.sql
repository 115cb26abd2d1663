-- Times named *_at are wall-clock epoch milliseconds. Times named *_boot are milliseconds of the boot clock and mean
-- something only together with boot_id: after a reboot every silence, claim and lease of the old boot has ended.

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

-- AUTOINCREMENT: a key is never reused, so a late report of a removed job can't land on a younger one.
CREATE TABLE kizami_jobs (
  key              INTEGER PRIMARY KEY AUTOINCREMENT,
  app              TEXT NOT NULL,
  binding          TEXT NOT NULL,
  shard            INTEGER NOT NULL,
  local_id         TEXT NOT NULL,
  state            TEXT NOT NULL CHECK (
    state IN ('SCHEDULED', 'QUEUED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'STALLED')
  ),
  pile             TEXT CHECK (pile IN ('waiting', 'ready')),
  priority         INTEGER NOT NULL,
  order_key        INTEGER NOT NULL,
  due_at           INTEGER NOT NULL,
  claim            INTEGER NOT NULL DEFAULT 0,
  attempt          INTEGER NOT NULL DEFAULT 0,
  attempts_allowed INTEGER NOT NULL,
  retries          INTEGER NOT NULL DEFAULT 0,
  snoozes          INTEGER NOT NULL DEFAULT 0,
  max_attempts     INTEGER NOT NULL,
  guarantee        TEXT NOT NULL CHECK (guarantee IN ('at-least-once', 'at-most-once')),
  timeout_ms       INTEGER NOT NULL,
  backoff          TEXT,
  payload          TEXT NOT NULL,
  worker_id        TEXT,
  boot_id          TEXT,
  alive_until_boot INTEGER,
  claimed_at       INTEGER,
  started_at       INTEGER,
  ended_at         INTEGER,
  progress         REAL,
  result           TEXT,
  result_note      TEXT,
  error            TEXT,
  schedule         TEXT,
  scheduled_at     INTEGER,
  manual           INTEGER NOT NULL DEFAULT 0,
  lease            TEXT,
  created_at       INTEGER NOT NULL,
  CHECK ((state = 'SCHEDULED') = (pile IS NOT NULL)),
  CHECK ((state IN ('QUEUED', 'RUNNING')) = (worker_id IS NOT NULL)),
  UNIQUE (app, binding, shard, local_id)
) STRICT;

CREATE INDEX kizami_jobs_ready   ON kizami_jobs (app, binding, shard, order_key, key) WHERE pile = 'ready';
CREATE INDEX kizami_jobs_waiting ON kizami_jobs (app, due_at) WHERE pile = 'waiting';
CREATE INDEX kizami_jobs_active  ON kizami_jobs (app, worker_id) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX kizami_jobs_ended   ON kizami_jobs (app, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX kizami_jobs_failed  ON kizami_jobs (app, state, key) WHERE state IN ('FAILED', 'STALLED', 'CANCELLED');
CREATE INDEX kizami_jobs_origin  ON kizami_jobs (app, schedule, key) WHERE schedule IS NOT NULL;

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
  anchor_at          INTEGER NOT NULL,
  planned_at         INTEGER,
  settled_at         INTEGER,
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
  CHECK ((delivered_at IS NULL) = (ts IS NULL)),
  UNIQUE (app, channel, item)
) STRICT;

CREATE INDEX kizami_deliveries_owed ON kizami_deliveries (app, channel, due, seq)
  WHERE delivered_at IS NULL AND set_aside_at IS NULL;

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
  off                 INTEGER NOT NULL DEFAULT 0,
  aimed_at            INTEGER,
  replaced_at         INTEGER,
  parked_hash         TEXT,
  possible_duplicates INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (app, name, channel)
) STRICT, WITHOUT ROWID;

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
