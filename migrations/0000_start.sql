CREATE TABLE `approvals` (
	`id` text PRIMARY KEY NOT NULL,
	`scope` text NOT NULL,
	`kind` text DEFAULT 'run' NOT NULL,
	`skill_id` text NOT NULL,
	`version` text NOT NULL,
	`manifest_hash` text NOT NULL,
	`inputs_hash` text NOT NULL,
	`inputs` text NOT NULL,
	`why` text NOT NULL,
	`requested_by` text NOT NULL,
	`requested_key` text,
	`self_approval` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`status` text NOT NULL,
	`decided_by` text,
	`decided_at` integer,
	`reason` text,
	`traceparent` text,
	`run` text
);
--> statement-breakpoint
CREATE INDEX `approvals_status` ON `approvals` (`status`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `approvals_age` ON `approvals` (`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `approvals_scope` ON `approvals` (`scope`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `calls` (
	`trace_id` text NOT NULL,
	`scope` text NOT NULL,
	`seq` integer NOT NULL,
	`agent` text NOT NULL,
	`log_from` integer NOT NULL,
	`kinds` integer NOT NULL,
	`skills` text NOT NULL,
	`started_at` integer NOT NULL,
	`ended_at` integer NOT NULL,
	`status` text NOT NULL,
	`revision` integer NOT NULL,
	PRIMARY KEY(`trace_id`, `scope`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `calls_seq` ON `calls` (`seq`);--> statement-breakpoint
CREATE TABLE `dead_letters` (
	`id` text PRIMARY KEY NOT NULL,
	`origin` text NOT NULL,
	`scope` text,
	`event_id` text,
	`type` text,
	`error` text NOT NULL,
	`stack` text,
	`attempts` integer NOT NULL,
	`payload` text NOT NULL,
	`dead_lettered_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dead_letters_age` ON `dead_letters` (`dead_lettered_at`,`id`);--> statement-breakpoint
CREATE INDEX `dead_letters_scope` ON `dead_letters` (`scope`,`dead_lettered_at`,`id`);--> statement-breakpoint
CREATE INDEX `dead_letters_type` ON `dead_letters` (`type`,`dead_lettered_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `dead_letters_event` ON `dead_letters` (`scope`,`event_id`);--> statement-breakpoint
CREATE TABLE `events` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`scope` text NOT NULL,
	`type` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`error` text,
	`accepted_at` integer NOT NULL,
	`revision` integer DEFAULT 0 NOT NULL,
	`ended_at` integer,
	`agent` text,
	`trace_id` text,
	`trace_key` text,
	`log_from` integer,
	`kinds` integer DEFAULT 0 NOT NULL,
	`skills` text DEFAULT '' NOT NULL,
	`payload` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `events_trace` ON `events` (`trace_key`) WHERE trace_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `events_scope` ON `events` (`scope`);--> statement-breakpoint
CREATE INDEX `events_unusual` ON `events` (`status`) WHERE status NOT IN ('completed', 'ignored');--> statement-breakpoint
CREATE UNIQUE INDEX `events_id_scope` ON `events` (`id`,`scope`);--> statement-breakpoint
CREATE TABLE `hook_counts` (
	`hook` text NOT NULL,
	`result` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hook`, `result`)
);
--> statement-breakpoint
CREATE TABLE `hooks` (
	`name` text PRIMARY KEY NOT NULL,
	`scope` text NOT NULL,
	`scheme` text NOT NULL,
	`mapping` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`roles` text NOT NULL,
	`scopes` text NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `queued` (
	`id` integer PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`events` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `scopes` (
	`scope` text PRIMARY KEY NOT NULL,
	`agent` text NOT NULL,
	`open` integer NOT NULL,
	`wake_at` integer,
	`updated_at` integer NOT NULL,
	`turn_since` integer,
	`parked` integer DEFAULT 0 NOT NULL,
	`spans_exported` integer DEFAULT 0 NOT NULL,
	`spans_dropped` integer DEFAULT 0 NOT NULL,
	`learns` integer DEFAULT 0 NOT NULL,
	`learned_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `scopes_wake` ON `scopes` (`wake_at`);--> statement-breakpoint
CREATE INDEX `scopes_learned` ON `scopes` (`learned_at`) WHERE learns = 1;--> statement-breakpoint
CREATE TABLE `statistics` (
	`family` text NOT NULL,
	`bucket` text NOT NULL,
	`start` integer NOT NULL,
	`scope` text NOT NULL,
	`values` text NOT NULL,
	PRIMARY KEY(`family`, `bucket`, `start`, `scope`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `statistics_changes` (
	`family` text NOT NULL,
	`bucket` text NOT NULL,
	`start` integer NOT NULL,
	PRIMARY KEY(`family`, `bucket`, `start`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `statistics_sums` (
	`family` text NOT NULL,
	`bucket` text NOT NULL,
	`start` integer NOT NULL,
	`prefix` text NOT NULL,
	`total` text NOT NULL,
	`labels` text,
	PRIMARY KEY(`family`, `bucket`, `start`, `prefix`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `control_plane` (
	`id` text PRIMARY KEY NOT NULL,
	`client` text NOT NULL,
	`feed` text NOT NULL,
	`revision` integer NOT NULL,
	`synced_at` integer,
	`failing_since` integer,
	`error` text,
	`skipped` text NOT NULL,
	`reported_until` integer
);
--> statement-breakpoint
CREATE TABLE `promotions` (
	`id` text PRIMARY KEY NOT NULL,
	`skill_id` text NOT NULL,
	`version` text NOT NULL,
	`hash` text NOT NULL,
	`from_env` text NOT NULL,
	`to_env` text NOT NULL,
	`status` text NOT NULL,
	`reports` text NOT NULL,
	`requested_by` text NOT NULL,
	`requested_key` text NOT NULL,
	`request_reason` text,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`decided_by` text,
	`decided_key` text,
	`decided_at` integer,
	`reason` text
);
--> statement-breakpoint
CREATE INDEX `promotions_skill` ON `promotions` (`skill_id`,`version`,`status`);--> statement-breakpoint
CREATE INDEX `promotions_age` ON `promotions` (`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `telemetry` (
	`key_id` text NOT NULL,
	`client` text NOT NULL,
	`window_start` integer NOT NULL,
	`skill_id` text NOT NULL,
	`window_end` integer NOT NULL,
	`calls` integer NOT NULL,
	`success` integer NOT NULL,
	`delta_cost` real,
	`delta_p95` real,
	PRIMARY KEY(`key_id`, `client`, `window_start`, `skill_id`)
);
--> statement-breakpoint
CREATE INDEX `telemetry_skill` ON `telemetry` (`skill_id`,`window_start`);--> statement-breakpoint
CREATE INDEX `telemetry_age` ON `telemetry` (`window_end`);--> statement-breakpoint
CREATE TABLE `artifact_patterns` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`pattern` text NOT NULL,
	`prefix` text NOT NULL,
	PRIMARY KEY(`kind`, `id`, `pattern`)
);
--> statement-breakpoint
CREATE INDEX `artifact_patterns_prefix` ON `artifact_patterns` (`prefix`,`pattern`);--> statement-breakpoint
CREATE INDEX `artifact_patterns_pattern` ON `artifact_patterns` (`pattern`,`kind`,`id`);--> statement-breakpoint
CREATE TABLE `artifact_versions` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`version` text NOT NULL,
	`precedence` text NOT NULL,
	`content` text NOT NULL,
	`hash` text NOT NULL,
	`description` text NOT NULL,
	`state` text NOT NULL,
	`state_reason` text,
	`state_at` integer NOT NULL,
	`revision` integer NOT NULL,
	`provenance` text NOT NULL,
	`created_at` integer NOT NULL,
	`sharing` text NOT NULL,
	`by_proof` integer DEFAULT false NOT NULL,
	`sealed` integer DEFAULT false NOT NULL,
	`program` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`kind`, `id`, `version`)
);
--> statement-breakpoint
CREATE INDEX `artifact_versions_changes` ON `artifact_versions` (`kind`,`id`,`revision`,`version`);--> statement-breakpoint
CREATE INDEX `artifact_versions_precedence` ON `artifact_versions` (`kind`,`id`,`precedence`);--> statement-breakpoint
CREATE INDEX `artifact_versions_state` ON `artifact_versions` (`kind`,`id`,`state`,`precedence`);--> statement-breakpoint
CREATE INDEX `artifact_versions_revision` ON `artifact_versions` (`revision`);--> statement-breakpoint
CREATE INDEX `artifact_versions_program` ON `artifact_versions` (`program`);--> statement-breakpoint
CREATE TABLE `artifacts` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`owner` text NOT NULL,
	`owner_id` text NOT NULL,
	`scopes` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `id`)
);
--> statement-breakpoint
CREATE INDEX `artifacts_owner` ON `artifacts` (`kind`,`owner_id`);--> statement-breakpoint
CREATE TABLE `certificates` (
	`reflex_id` text NOT NULL,
	`version` integer NOT NULL,
	`scope` text NOT NULL,
	`certificate` text NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`reflex_id`, `version`, `scope`)
);
--> statement-breakpoint
CREATE TABLE `entitlements` (
	`deal_id` text NOT NULL,
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`version` text NOT NULL,
	`pattern` text NOT NULL,
	`prefix` text NOT NULL,
	`hash` text NOT NULL,
	`expires_at` integer,
	`fires` integer,
	`metered` integer NOT NULL,
	`in_use` integer NOT NULL,
	`ended_at` integer,
	PRIMARY KEY(`deal_id`, `kind`, `id`, `version`, `pattern`)
);
--> statement-breakpoint
CREATE INDEX `entitlements_artifact` ON `entitlements` (`kind`,`id`,`in_use`);--> statement-breakpoint
CREATE INDEX `entitlements_prefix` ON `entitlements` (`kind`,`prefix`);--> statement-breakpoint
CREATE INDEX `entitlements_ended` ON `entitlements` (`ended_at`) WHERE in_use = 0;--> statement-breakpoint
CREATE TABLE `reflex_metrics` (
	`reflex_id` text NOT NULL,
	`version` integer NOT NULL,
	`scope` text NOT NULL,
	`metrics` text NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`reflex_id`, `version`, `scope`)
);
--> statement-breakpoint
CREATE TABLE `reflex_uses` (
	`reflex_id` text NOT NULL,
	`scope` text NOT NULL,
	PRIMARY KEY(`reflex_id`, `scope`)
);
--> statement-breakpoint
CREATE INDEX `reflex_uses_scope` ON `reflex_uses` (`scope`);--> statement-breakpoint
CREATE TABLE `skill_cases` (
	`skill_id` text NOT NULL,
	`name` text NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`skill_id`, `name`)
);
--> statement-breakpoint
CREATE TABLE `skill_tests` (
	`skill_id` text NOT NULL,
	`version` text NOT NULL,
	`hash` text NOT NULL,
	`passed` integer NOT NULL,
	`failed_in_a_row` integer NOT NULL,
	`report` text NOT NULL,
	`by` text NOT NULL,
	`tested_at` integer NOT NULL,
	PRIMARY KEY(`skill_id`, `version`, `hash`)
);
--> statement-breakpoint
CREATE TABLE `learn_runs` (
	`id` text PRIMARY KEY NOT NULL,
	`scope` text NOT NULL,
	`status` text NOT NULL,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	`revision` integer NOT NULL,
	`summary` text NOT NULL,
	`findings` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `learn_runs_age` ON `learn_runs` (`started_at`,`id`);--> statement-breakpoint
CREATE INDEX `learn_runs_scope` ON `learn_runs` (`scope`,`started_at`,`id`);--> statement-breakpoint
CREATE TABLE `ledger_transfers` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`debit` text NOT NULL,
	`credit` text NOT NULL,
	`amount` integer NOT NULL,
	`kind` text NOT NULL,
	`code` text,
	`memo` text,
	`pending_id` text,
	`expires_at` text,
	`by` text,
	`at` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `ledger_transfers_debit` ON `ledger_transfers` (`debit`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_credit` ON `ledger_transfers` (`credit`);--> statement-breakpoint
CREATE INDEX `ledger_transfers_at` ON `ledger_transfers` (`at`);--> statement-breakpoint
CREATE TABLE `listings` (
	`listing_id` text PRIMARY KEY NOT NULL,
	`revision` integer NOT NULL,
	`artifact_kind` text NOT NULL,
	`artifact_id` text NOT NULL,
	`version` text NOT NULL,
	`kind` text NOT NULL,
	`price` integer NOT NULL,
	`seller` text NOT NULL,
	`state` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`listing` text NOT NULL,
	`measured_at` integer DEFAULT 0 NOT NULL,
	`figures` text,
	`score` real DEFAULT 0 NOT NULL,
	`because` text
);
--> statement-breakpoint
CREATE INDEX `listings_measured` ON `listings` (`measured_at`) WHERE state = 'open';--> statement-breakpoint
CREATE INDEX `listings_artifact` ON `listings` (`artifact_kind`,`artifact_id`,`version`);--> statement-breakpoint
CREATE INDEX `listings_seller` ON `listings` (`seller`,`listing_id`);--> statement-breakpoint
CREATE TABLE `trials` (
	`listing_id` text NOT NULL,
	`scope` text NOT NULL,
	`id` text NOT NULL,
	`since` integer NOT NULL,
	`started_at` integer NOT NULL,
	`report` text,
	PRIMARY KEY(`listing_id`, `scope`, `id`)
);
--> statement-breakpoint
CREATE INDEX `trials_age` ON `trials` (`started_at`);