CREATE TABLE `action_keys` (
	`reflex_id` text NOT NULL,
	`idempotence_key` text NOT NULL,
	`effect` text,
	`at` integer NOT NULL,
	PRIMARY KEY(`reflex_id`, `idempotence_key`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `archive_files` (
	`number` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`day` text NOT NULL,
	`first_seq` integer,
	`last_seq` integer,
	`rows` integer,
	`files` text,
	`ids` text,
	`archived_at` integer
);
--> statement-breakpoint
CREATE INDEX `archive_files_order` ON `archive_files` (`kind`,`last_seq`);--> statement-breakpoint
CREATE TABLE `artifacts` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`version` text NOT NULL,
	`artifact` text NOT NULL,
	PRIMARY KEY(`kind`, `id`, `version`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `certificates` (
	`reflex_id` text NOT NULL,
	`version` integer NOT NULL,
	`certificate` text NOT NULL,
	`issued_at` integer NOT NULL,
	PRIMARY KEY(`reflex_id`, `version`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `done_keys` (
	`hash` text PRIMARY KEY NOT NULL,
	`output` text,
	`output_bytes` integer NOT NULL,
	`at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `done_keys_age` ON `done_keys` (`at`);--> statement-breakpoint
CREATE TABLE `effects` (
	`owner` text NOT NULL,
	`phase` text NOT NULL,
	`place` integer NOT NULL,
	`tool` text,
	`arguments_hash` text,
	`idempotence_key` text,
	`status` text NOT NULL,
	`output` text,
	`error` text,
	`step` text,
	`log_seq` integer,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	PRIMARY KEY(`owner`, `phase`, `place`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `effects_key` ON `effects` (`tool`,`idempotence_key`) WHERE idempotence_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `effects_open` ON `effects` (`started_at`) WHERE status = 'started';--> statement-breakpoint
CREATE TABLE `events` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`scope` text NOT NULL,
	`type` text NOT NULL,
	`source` text NOT NULL,
	`timestamp` text NOT NULL,
	`trace_id` text NOT NULL,
	`payload` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`error` text,
	`due_at` integer DEFAULT 0 NOT NULL,
	`lease_until` integer,
	`ack_token` text,
	`accepted_at` integer NOT NULL,
	`chain_seq` integer,
	`ended_at` integer,
	`in_context` integer DEFAULT 0 NOT NULL,
	`outcome` text,
	`turns` text,
	`interruptions` integer DEFAULT 0 NOT NULL,
	`parked` text,
	`parked_at` integer
);
--> statement-breakpoint
CREATE INDEX `events_claim` ON `events` (`seq`,`due_at`) WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX `events_delayed` ON `events` (`due_at`) WHERE status = 'pending' AND due_at > 0;--> statement-breakpoint
CREATE INDEX `events_lease` ON `events` (`ack_token`,`lease_until`) WHERE status = 'processing';--> statement-breakpoint
CREATE UNIQUE INDEX `events_id` ON `events` (`id`);--> statement-breakpoint
CREATE TABLE `guard` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`deaths` integer NOT NULL,
	`reason` text NOT NULL,
	`at` integer NOT NULL,
	`parked_at` integer,
	PRIMARY KEY(`kind`, `id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `jobs` (
	`seq` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`payload` text NOT NULL,
	`locks` text NOT NULL,
	`attempts` integer NOT NULL,
	`due_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `log` (
	`seq` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`counts` text,
	`entries` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `outbox` (
	`topic` text NOT NULL,
	`key` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`topic`, `key`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `parked_runs` (
	`approval_id` text PRIMARY KEY NOT NULL,
	`run` text NOT NULL,
	`expires_at` integer NOT NULL,
	`parked_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `parts` (
	`hash` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`value` text NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `skill_outputs` (
	`idempotence_key` text PRIMARY KEY NOT NULL,
	`outputs` text NOT NULL,
	`at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `skill_runs` (
	`cause` text NOT NULL,
	`run_id` text NOT NULL,
	`skill_id` text NOT NULL,
	`inputs_hash` text NOT NULL,
	`status` text NOT NULL,
	`result` text,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	PRIMARY KEY(`cause`, `run_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `skill_runs_skill` ON `skill_runs` (`skill_id`,`started_at`);--> statement-breakpoint
CREATE TABLE `state` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`schedule` text NOT NULL,
	`set_at` integer NOT NULL,
	`next_at` integer NOT NULL,
	`fired` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `trials` (
	`seq` integer NOT NULL,
	`reflex_id` text NOT NULL,
	`version` integer NOT NULL,
	`action` text NOT NULL,
	PRIMARY KEY(`seq`, `reflex_id`, `version`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `used_tickets` (
	`nonce` text PRIMARY KEY NOT NULL,
	`expires_at` integer NOT NULL
) WITHOUT ROWID;
