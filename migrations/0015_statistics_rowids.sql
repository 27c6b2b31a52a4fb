CREATE TABLE `__new_statistics_packs` (
	`family` text NOT NULL,
	`bucket` text NOT NULL,
	`start` integer NOT NULL,
	`part` text NOT NULL,
	`revision` integer NOT NULL,
	`scopes` text NOT NULL,
	`seqs` text NOT NULL
);
--> statement-breakpoint
INSERT INTO `__new_statistics_packs`("family", "bucket", "start", "part", "revision", "scopes", "seqs") SELECT "family", "bucket", "start", "part", "revision", "scopes", "seqs" FROM `statistics_packs`;--> statement-breakpoint
DROP TABLE `statistics_packs`;--> statement-breakpoint
ALTER TABLE `__new_statistics_packs` RENAME TO `statistics_packs`;--> statement-breakpoint
CREATE UNIQUE INDEX `statistics_packs_bucket` ON `statistics_packs` (`family`,`bucket`,`start`,`part`);