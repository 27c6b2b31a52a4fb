CREATE TABLE `blocks` (
	`scope` text NOT NULL,
	`address` text NOT NULL,
	`reason` text NOT NULL,
	`blocked_at` integer NOT NULL,
	`id` text NOT NULL,
	PRIMARY KEY(`scope`, `address`)
);
--> statement-breakpoint
CREATE INDEX `blocks_age` ON `blocks` (`blocked_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `blocks_id` ON `blocks` (`id`);--> statement-breakpoint
CREATE TABLE `incidents` (
	`scope` text NOT NULL,
	`id` text NOT NULL,
	`title` text NOT NULL,
	`details` text NOT NULL,
	`evidence` text NOT NULL,
	`opened_at` integer NOT NULL,
	`closed_at` integer,
	PRIMARY KEY(`scope`, `id`)
);
--> statement-breakpoint
CREATE INDEX `incidents_id` ON `incidents` (`id`);--> statement-breakpoint
CREATE INDEX `incidents_age` ON `incidents` (`opened_at`,`id`);--> statement-breakpoint
CREATE INDEX `incidents_closed` ON `incidents` (`closed_at`) WHERE closed_at IS NOT NULL;