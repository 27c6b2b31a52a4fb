CREATE TABLE `alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`name` text NOT NULL,
	`summary` text NOT NULL,
	`details` text NOT NULL,
	`reach` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `alerts_age` ON `alerts` (`at`,`id`);