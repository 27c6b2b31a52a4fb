CREATE TABLE `statistics_packs` (
	`family` text NOT NULL,
	`bucket` text NOT NULL,
	`start` integer NOT NULL,
	`part` text NOT NULL,
	`revision` integer NOT NULL,
	`scopes` text NOT NULL,
	`seqs` text NOT NULL,
	PRIMARY KEY(`family`, `bucket`, `start`, `part`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `statistics_waiting` (
	`id` integer PRIMARY KEY NOT NULL,
	`answers` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `statistics` ADD `seq` integer DEFAULT 0 NOT NULL;