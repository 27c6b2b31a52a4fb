CREATE TABLE `actions` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`key_id` text NOT NULL,
	`nth` integer NOT NULL,
	`key_name` text NOT NULL,
	`role` text NOT NULL,
	`action` text NOT NULL,
	`method` text NOT NULL,
	`scope` text,
	`reach` text NOT NULL,
	`target` text,
	`trace_id` text
);
--> statement-breakpoint
CREATE INDEX `actions_age` ON `actions` (`at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `actions_key` ON `actions` (`key_id`,`nth`);