-- Times are epoch milliseconds of the database's own clock. Rooms ask for it with kizami_now(), and nobody else.

CREATE FUNCTION kizami_now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

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
  seen_at       bigint NOT NULL
);

-- AUTOINCREMENT: a key is never reused, so a late report of a removed job can't land on a younger one.
CREATE TABLE kizami_jobs (
  key              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app              text COLLATE "C" NOT NULL,
  binding          text COLLATE "C" NOT NULL,
  shard            bigint NOT NULL,
  local_id         text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL CHECK (
    state IN ('SCHEDULED', 'QUEUED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'STALLED')
  ),
  pile             text COLLATE "C" CHECK (pile IN ('waiting', 'ready')),
  priority         bigint NOT NULL,
  order_key        bigint NOT NULL,
  due_at           bigint NOT NULL,
  claim            bigint NOT NULL DEFAULT 0,
  attempt          bigint NOT NULL DEFAULT 0,
  attempts_allowed bigint NOT NULL,
  retries          bigint NOT NULL DEFAULT 0,
  snoozes          bigint NOT NULL DEFAULT 0,
  max_attempts     bigint NOT NULL,
  guarantee        text COLLATE "C" NOT NULL CHECK (guarantee IN ('at-least-once', 'at-most-once')),
  timeout_ms       bigint NOT NULL,
  backoff          text COLLATE "C",
  payload          text COLLATE "C" NOT NULL,
  worker_id        text COLLATE "C",
  alive_until_at   bigint,
  claimed_at       bigint,
  started_at       bigint,
  ended_at         bigint,
  progress         double precision,
  result           text COLLATE "C",
  result_note      text COLLATE "C",
  error            text COLLATE "C",
  schedule         text COLLATE "C",
  scheduled_at     bigint,
  manual           bigint NOT NULL DEFAULT 0,
  lease            text COLLATE "C",
  created_at       bigint NOT NULL,
  CHECK ((state = 'SCHEDULED') = (pile IS NOT NULL)),
  CHECK ((state IN ('QUEUED', 'RUNNING')) = (worker_id IS NOT NULL)),
  UNIQUE (app, binding, shard, local_id)
);

CREATE INDEX kizami_jobs_ready   ON kizami_jobs (app, binding, shard, order_key, key) WHERE pile = 'ready';
CREATE INDEX kizami_jobs_waiting ON kizami_jobs (app, due_at) WHERE pile = 'waiting';
CREATE INDEX kizami_jobs_active  ON kizami_jobs (app, worker_id) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX kizami_jobs_ended   ON kizami_jobs (app, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX kizami_jobs_failed  ON kizami_jobs (app, state, key) WHERE state IN ('FAILED', 'STALLED', 'CANCELLED');
CREATE INDEX kizami_jobs_origin  ON kizami_jobs (app, schedule, key) WHERE schedule IS NOT NULL;

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
  anchor_at          bigint NOT NULL,
  planned_at         bigint,
  settled_at         bigint,
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
  CHECK ((delivered_at IS NULL) = (ts IS NULL)),
  UNIQUE (app, channel, item)
);

CREATE INDEX kizami_deliveries_owed ON kizami_deliveries (app, channel, due, seq)
  WHERE delivered_at IS NULL AND set_aside_at IS NULL;

-- What was about to be posted, committed before the call. An intent without settled_at is in doubt.
CREATE TABLE kizami_intents (
  app          text COLLATE "C" NOT NULL,
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('delivery', 'board')),
  channel      text COLLATE "C" NOT NULL,
  item         text COLLATE "C" NOT NULL,
  attempt      bigint NOT NULL,
  attempted_at bigint NOT NULL,
  settled_at   bigint,
  note         text COLLATE "C",
  PRIMARY KEY (app, kind, channel, item, attempt)
);

CREATE INDEX kizami_intents_unsettled ON kizami_intents (app, kind, channel, item) WHERE settled_at IS NULL;

CREATE TABLE kizami_boards (
  app                text COLLATE "C" NOT NULL,
  name               text COLLATE "C" NOT NULL,
  channel            text COLLATE "C" NOT NULL,
  posted_channel     text COLLATE "C",
  ts                 text COLLATE "C",
  synced_at          bigint,
  content_hash       text COLLATE "C",
  posted_at          bigint,
  edited_at          bigint,
  posts              bigint NOT NULL DEFAULT 0,
  edits              bigint NOT NULL DEFAULT 0,
  attempts           bigint NOT NULL DEFAULT 0,
  claim_token        text COLLATE "C",
  claim_worker       text COLLATE "C",
  claim_expires_at   bigint,
  note               text COLLATE "C",
  off                boolean NOT NULL DEFAULT false,
  aimed_at           bigint,
  replaced_at        bigint,
  parked_hash        text COLLATE "C",
  PRIMARY KEY (app, name)
);

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
