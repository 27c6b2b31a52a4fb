CREATE TABLE `reflex_metrics_packs` (
	`reflex_id` text NOT NULL,
	`version` integer NOT NULL,
	`part` text NOT NULL,
	`revision` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`scopes` text NOT NULL,
	`seqs` text NOT NULL,
	PRIMARY KEY(`reflex_id`, `version`, `part`)
);
--> statement-breakpoint
ALTER TABLE `packs` ADD `told` text;--> statement-breakpoint
ALTER TABLE `reflex_metrics` ADD `seq` integer DEFAULT 0 NOT NULL;