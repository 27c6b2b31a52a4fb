CREATE TABLE `letter_jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`verb` text NOT NULL,
	`which` text NOT NULL,
	`patterns` text NOT NULL,
	`key_id` text NOT NULL,
	`by` text NOT NULL,
	`traceparent` text,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	`before` text NOT NULL,
	`total` integer NOT NULL,
	`done` integer DEFAULT 0 NOT NULL,
	`failed` integer DEFAULT 0 NOT NULL,
	`error` text,
	`leased_until` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `letter_jobs_open` ON `letter_jobs` (`ended_at`,`started_at`);