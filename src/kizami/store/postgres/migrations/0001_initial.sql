-- Times are epoch milliseconds of the database's own clock. Rooms ask for it with kizami_now(), and nobody else.

CREATE FUNCTION kizami_now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Which database this is. Two of them may serve one app in one workspace, such as those of staging and production; what
-- they post carries this id, so that neither takes the other's messages for its own. A copy of the database keeps it.
CREATE TABLE kizami_identity (
  one         bigint PRIMARY KEY CHECK (one = 1),
  database_id text COLLATE "C" NOT NULL
);

INSERT INTO kizami_identity (one, database_id) VALUES (1, left(replace(gen_random_uuid()::text, '-', ''), 16));

CREATE TABLE kizami_workers (
  worker_id     text COLLATE "C" PRIMARY KEY,
  app           text COLLATE "C" NOT NULL,
  host          text COLLATE "C" NOT NULL,
  boot_id       text COLLATE "C" NOT NULL,
  pid_namespace text COLLATE "C" NOT NULL,
  pid           bigint NOT NULL,
  started       text COLLATE "C" NOT NULL,
  bindings      text COLLATE "C" NOT NULL CHECK (bindings::json IS NOT NULL),
  started_at    bigint NOT NULL,
  seen_at       bigint NOT NULL,
  note          text COLLATE "C",
  edition       bigint
);

-- The editions of an app's code, that is its schedules all together, numbered in the order in which they first ran.
CREATE TABLE kizami_editions (
  app          text COLLATE "C" NOT NULL,
  fingerprint  text COLLATE "C" NOT NULL,
  number       bigint NOT NULL,
  first_run_at bigint NOT NULL,
  in_force     boolean NOT NULL DEFAULT false,
  PRIMARY KEY (app, fingerprint)
);

-- What code declares of each binding, and what operators lay over it.
CREATE TABLE kizami_bindings (
  app                      text COLLATE "C" NOT NULL,
  name                     text COLLATE "C" NOT NULL,
  shards                   bigint NOT NULL CHECK (shards >= 1),
  requires_concurrency_key bigint NOT NULL,
  requires_unique_key      bigint NOT NULL,
  payload_schema           text COLLATE "C",
  policy                   text COLLATE "C" NOT NULL CHECK (policy::json IS NOT NULL),
  override                 text COLLATE "C" CHECK (override IS NULL OR override::json IS NOT NULL),
  completed_ms             bigint NOT NULL,
  failed_ms                bigint NOT NULL,
  paused_at                bigint,
  declared_at              bigint NOT NULL,
  PRIMARY KEY (app, name)
);

-- One row per binding and shard, never removed: jobs and their indexes carry its short number. The bucket_* columns are
-- the token bucket as it stood at bucket_at of the boot clock. rekey_after: up to which job key a changed policy has
-- been worked into the outstanding jobs (NULL: into all). removed_until_at: the youngest job that retention removed.
CREATE TABLE kizami_shards (
  shard_key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app                text COLLATE "C" NOT NULL,
  binding            text COLLATE "C" NOT NULL,
  shard              bigint NOT NULL,
  bucket_tokens      bigint,
  bucket_interval_ms bigint,
  bucket_level       bigint,
  bucket_at          bigint,
  bucket_clock_id    text COLLATE "C",
  rekey_after        bigint,
  removed_until_at   bigint NOT NULL DEFAULT 0,
  UNIQUE (app, binding, shard),
  FOREIGN KEY (app, binding) REFERENCES kizami_bindings (app, name)
);

-- The last 20 bits of a job's key, see take_keys.
CREATE SEQUENCE kizami_job_numbers;

-- pile: waiting (not yet due), ready, or blocked (its concurrency_key was full when a claim met it). A job's place in
-- the order is (rank, order_key, key), see Policy.place.
CREATE TABLE kizami_jobs (
  key              bigint PRIMARY KEY,
  shard_key        bigint NOT NULL,
  local_id         text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL CHECK (
    state = 'SCHEDULED' OR state = 'QUEUED' OR state = 'COMPLETED' OR state = 'RUNNING' OR state = 'FAILED'
    OR state = 'CANCELLED' OR state = 'STALLED'
  ),
  pile             text COLLATE "C" CHECK (pile = 'ready' OR pile = 'waiting' OR pile = 'blocked'),
  priority         bigint NOT NULL,
  rank             bigint NOT NULL,
  order_key        bigint NOT NULL,
  due_at           bigint NOT NULL,
  first_due_at     bigint NOT NULL,
  concurrency_key  text COLLATE "C",
  unique_key       text COLLATE "C",
  partition_key    text COLLATE "C",
  claim            bigint NOT NULL DEFAULT 0,
  attempt          bigint NOT NULL DEFAULT 0,
  attempts_allowed bigint NOT NULL,
  retries          bigint NOT NULL DEFAULT 0,
  snoozes          bigint NOT NULL DEFAULT 0,
  max_attempts     bigint NOT NULL,
  guarantee        text COLLATE "C" NOT NULL CHECK (guarantee IN ('at-least-once', 'at-most-once')),
  timeout_ms       bigint NOT NULL,
  backoff          text COLLATE "C",
  worker_id        text COLLATE "C",
  alive_until_at   bigint,
  grace_ms         bigint NOT NULL DEFAULT 0,
  started_at       bigint,
  ended_at         bigint,
  progress         double precision,
  schedule         text COLLATE "C",
  scheduled_at     bigint,
  manual           bigint NOT NULL DEFAULT 0,
  lease            text COLLATE "C",
  result_note      text COLLATE "C",
  error            text COLLATE "C",
  result           text COLLATE "C",
  payload          text COLLATE "C" NOT NULL,
  CHECK ((state = 'SCHEDULED') = (pile IS NOT NULL)),
  CHECK ((state IN ('QUEUED', 'RUNNING')) = (worker_id IS NOT NULL))
);

-- Two indexes for the ended ones: each retention time finds its
-- own at the front.
CREATE INDEX kizami_jobs_ready    ON kizami_jobs (shard_key, rank, order_key, key) WHERE pile = 'ready';
CREATE INDEX kizami_jobs_waiting  ON kizami_jobs (shard_key, due_at, key) WHERE pile = 'waiting';
CREATE INDEX kizami_jobs_blocked  ON kizami_jobs (shard_key, concurrency_key, rank, order_key, key) WHERE pile = 'blocked';
CREATE INDEX kizami_jobs_active   ON kizami_jobs (shard_key, concurrency_key) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX kizami_jobs_done     ON kizami_jobs (shard_key, ended_at, key) WHERE state IN ('COMPLETED', 'CANCELLED');
CREATE INDEX kizami_jobs_broken   ON kizami_jobs (shard_key, ended_at, key) WHERE state IN ('FAILED', 'STALLED');
CREATE INDEX kizami_jobs_created  ON kizami_jobs (shard_key, key);
CREATE INDEX kizami_jobs_keyed    ON kizami_jobs (shard_key, concurrency_key, key) WHERE concurrency_key <> '';
CREATE INDEX kizami_jobs_unique   ON kizami_jobs (shard_key, unique_key, key) WHERE unique_key <> '';
CREATE INDEX kizami_jobs_schedule ON kizami_jobs (schedule, shard_key, key) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX kizami_jobs_identity ON kizami_jobs (shard_key, local_id);

-- Which job has a unique_key, and until when; outlives the job. shard_key is where an enqueue looks: it moves when the
-- number of shards changes, the job stays in job_shard_key.
CREATE TABLE kizami_reservations (
  shard_key     bigint NOT NULL,
  unique_key    text COLLATE "C" NOT NULL,
  job_shard_key bigint NOT NULL,
  local_id      text COLLATE "C" NOT NULL,
  until_at      bigint NOT NULL,
  PRIMARY KEY (shard_key, unique_key)
);

CREATE INDEX kizami_reservations_until ON kizami_reservations (until_at);

-- How many jobs each shard has in each state and pile ('' outside of SCHEDULED). What a transaction moves is appended to
-- the deltas, so that no two wait for each other over a number; together they are the counts.
CREATE TABLE kizami_counts (
  shard_key bigint NOT NULL,
  state     text COLLATE "C" NOT NULL,
  pile      text COLLATE "C" NOT NULL,
  n         bigint NOT NULL,
  PRIMARY KEY (shard_key, state, pile)
);

CREATE TABLE kizami_count_deltas (
  shard_key bigint NOT NULL,
  state     text COLLATE "C" NOT NULL,
  pile      text COLLATE "C" NOT NULL,
  n         bigint NOT NULL
);

CREATE INDEX kizami_count_deltas_shard ON kizami_count_deltas (shard_key);

CREATE VIEW kizami_counted AS
SELECT shard_key, state, pile, n FROM kizami_counts UNION ALL SELECT shard_key, state, pile, n FROM kizami_count_deltas;

CREATE TABLE kizami_attempts (
  job_key    bigint NOT NULL REFERENCES kizami_jobs (key) ON DELETE CASCADE,
  number     bigint NOT NULL,
  attempt    bigint NOT NULL,
  claim      bigint NOT NULL,
  outcome    text COLLATE "C" NOT NULL,
  error      text COLLATE "C",
  worker_id  text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  ended_at   bigint NOT NULL,
  PRIMARY KEY (job_key, number)
);

-- zone_data: the edition of the time-zone database by which planned_at was made. settled_local: the local time up to which
-- ticks are settled, as epoch ms of that clock, so that none fires twice when the rules of its zone change.
CREATE TABLE kizami_schedules (
  app                text COLLATE "C" NOT NULL,
  name               text COLLATE "C" NOT NULL,
  version            bigint NOT NULL,
  fingerprint        text COLLATE "C" NOT NULL,
  timing             text COLLATE "C" NOT NULL CHECK (timing::json IS NOT NULL),
  timing_fingerprint text COLLATE "C" NOT NULL,
  binding            text COLLATE "C" NOT NULL,
  overlap            text COLLATE "C" NOT NULL CHECK (overlap IN ('skip', 'overlap')),
  driver             text COLLATE "C" NOT NULL CHECK (driver IN ('inner', 'external')),
  lease              text COLLATE "C",
  description        text COLLATE "C" NOT NULL,
  zone_data          text COLLATE "C",
  anchor_at          bigint NOT NULL,
  planned_at         bigint,
  settled_at         bigint,
  settled_local      bigint,
  last_planned_at    bigint,
  last_fired_at      bigint,
  last_job_id        text COLLATE "C",
  last_job_key       bigint,
  fired_count        bigint NOT NULL DEFAULT 0,
  skipped_count      bigint NOT NULL DEFAULT 0,
  skipped_at         bigint,
  missed_count       bigint NOT NULL DEFAULT 0,
  failed_count       bigint NOT NULL DEFAULT 0,
  last_error         text COLLATE "C",
  last_error_at      bigint,
  manual_sequence    bigint NOT NULL DEFAULT 0,
  paused_at          bigint,
  registered_at      bigint NOT NULL,
  removed_at         bigint,
  PRIMARY KEY (app, name)
);

-- Every definition that a schedule has had, with the version under which it was last in force; '' means removed.
CREATE TABLE kizami_definitions (
  app         text COLLATE "C" NOT NULL,
  schedule    text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  version     bigint NOT NULL,
  PRIMARY KEY (app, schedule, fingerprint)
);

CREATE INDEX kizami_schedules_due ON kizami_schedules (app, planned_at)
  WHERE planned_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL;

-- The fire ledger. A planned instant has one row, whoever asked for it: this index is what makes a tick fire once.
CREATE TABLE kizami_fires (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app             text COLLATE "C" NOT NULL,
  schedule        text COLLATE "C" NOT NULL,
  kind            text COLLATE "C" NOT NULL CHECK (kind IN ('planned', 'external', 'manual')),
  outcome         text COLLATE "C" NOT NULL,
  planned_at      bigint NOT NULL,
  planned_last_at bigint NOT NULL,
  count           bigint NOT NULL,
  acted_at        bigint NOT NULL,
  by              text COLLATE "C" NOT NULL,
  job_id          text COLLATE "C",
  reason          text COLLATE "C",
  version         bigint NOT NULL
);

CREATE UNIQUE INDEX kizami_fires_once ON kizami_fires (app, schedule, planned_at) WHERE kind <> 'manual';
CREATE INDEX kizami_fires_schedule ON kizami_fires (app, schedule, id);
CREATE INDEX kizami_fires_app ON kizami_fires (app, id);

CREATE TABLE kizami_leases (
  app            text COLLATE "C" NOT NULL,
  name           text COLLATE "C" NOT NULL,
  run_id         text COLLATE "C",
  holder         text COLLATE "C",
  worker_id      text COLLATE "C",
  started_at     bigint,
  heartbeat_at   bigint,
  PRIMARY KEY (app, name)
);

CREATE TABLE kizami_deliveries (
  seq                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app                 text COLLATE "C" NOT NULL,
  channel             text COLLATE "C" NOT NULL,
  item                text COLLATE "C" NOT NULL,
  content             text COLLATE "C" NOT NULL CHECK (content::json IS NOT NULL),
  due                 text COLLATE "C" NOT NULL,
  created_at          bigint NOT NULL,
  delivered_at        bigint,
  posted_channel      text COLLATE "C",
  ts                  text COLLATE "C",
  attempts            bigint NOT NULL DEFAULT 0,
  claim_token         text COLLATE "C",
  claim_worker        text COLLATE "C",
  claim_expires_at    bigint,
  set_aside_at        bigint,
  note                text COLLATE "C",
  possible_duplicates bigint NOT NULL DEFAULT 0,
  state               text COLLATE "C" GENERATED ALWAYS AS (CASE
    WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN set_aside_at IS NOT NULL THEN 'set_aside' ELSE 'owed'
  END) STORED,
  CHECK ((delivered_at IS NULL) = (ts IS NULL)),
  UNIQUE (app, channel, item)
);

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
  app     text COLLATE "C" NOT NULL,
  channel text COLLATE "C" NOT NULL,
  state   text COLLATE "C" NOT NULL,
  n       bigint NOT NULL,
  PRIMARY KEY (app, channel, state)
);

CREATE FUNCTION kizami_count_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moves CONSTANT text := CASE TG_OP
    WHEN 'INSERT' THEN 'SELECT app, channel, state, 1 AS n FROM came'
    WHEN 'DELETE' THEN 'SELECT app, channel, state, -1 AS n FROM gone'
    ELSE 'SELECT app, channel, state, 1 AS n FROM came UNION ALL SELECT app, channel, state, -1 FROM gone'
  END;
BEGIN
  EXECUTE 'INSERT INTO kizami_delivery_counts AS c (app, channel, state, n) '
    || 'SELECT app, channel, state, sum(n) FROM (' || moves || ') AS moved '
    || 'GROUP BY app, channel, state HAVING sum(n) <> 0 ORDER BY app, channel, state '
    || 'ON CONFLICT (app, channel, state) DO UPDATE SET n = c.n + excluded.n';
  RETURN NULL;
END
$$;

CREATE TRIGGER kizami_deliveries_added AFTER INSERT ON kizami_deliveries
  REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION kizami_count_deliveries();
CREATE TRIGGER kizami_deliveries_moved AFTER UPDATE ON kizami_deliveries
  REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION kizami_count_deliveries();
CREATE TRIGGER kizami_deliveries_removed AFTER DELETE ON kizami_deliveries
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION kizami_count_deliveries();

-- What was about to be posted, committed before the call. An intent without settled_at is in doubt. attempted_at is our
-- clock's, for people; slack_at is what Slack's clock showed at least by then, for looking through its history.
CREATE TABLE kizami_intents (
  app          text COLLATE "C" NOT NULL,
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('delivery', 'board')),
  channel      text COLLATE "C" NOT NULL,
  item         text COLLATE "C" NOT NULL,
  attempt      bigint NOT NULL,
  attempted_at bigint NOT NULL,
  slack_at     bigint,
  settled_at   bigint,
  note         text COLLATE "C",
  PRIMARY KEY (app, kind, channel, item, attempt)
);

CREATE INDEX kizami_intents_unsettled ON kizami_intents (app, kind, channel, item) WHERE settled_at IS NULL;
CREATE INDEX kizami_intents_settled   ON kizami_intents (app, settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE kizami_boards (
  app                 text COLLATE "C" NOT NULL,
  name                text COLLATE "C" NOT NULL,
  channel             text COLLATE "C" NOT NULL,
  posted_channel      text COLLATE "C",
  ts                  text COLLATE "C",
  synced_at           bigint,
  content_hash        text COLLATE "C",
  posted_at           bigint,
  edited_at           bigint,
  posts               bigint NOT NULL DEFAULT 0,
  edits               bigint NOT NULL DEFAULT 0,
  attempts            bigint NOT NULL DEFAULT 0,
  claim_token         text COLLATE "C",
  claim_worker        text COLLATE "C",
  claim_expires_at    bigint,
  note                text COLLATE "C",
  off_at              bigint,
  aimed_at            bigint,
  replaced_at         bigint,
  parked_hash         text COLLATE "C",
  possible_duplicates bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (app, name, channel)
);

CREATE INDEX kizami_boards_claimed ON kizami_boards (claim_worker) WHERE claim_worker IS NOT NULL;

CREATE TABLE kizami_gates (
  app         text COLLATE "C" NOT NULL,
  method      text COLLATE "C" NOT NULL,
  channel     text COLLATE "C" NOT NULL,
  closed_at   bigint NOT NULL,
  until_at    bigint NOT NULL,
  reason      text COLLATE "C" NOT NULL,
  PRIMARY KEY (app, method, channel)
);

CREATE TABLE kizami_cursors (
  app      text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  position text COLLATE "C" NOT NULL CHECK (position::json IS NOT NULL),
  moved_at bigint NOT NULL,
  PRIMARY KEY (app, name)
);

-- Rows that change often: room for the new versions beside the old ones, and a vacuum that comes early.
ALTER TABLE kizami_jobs SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE kizami_count_deltas SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE kizami_shards SET (fillfactor = 50);
ALTER TABLE kizami_workers SET (fillfactor = 50);
