CREATE TABLE `pack_index` (
	`place` integer PRIMARY KEY NOT NULL,
	`accepted_at` integer NOT NULL,
	`packs` text NOT NULL,
	`entries` blob NOT NULL
);
--> statement-breakpoint
CREATE TABLE `packs` (
	`id` integer PRIMARY KEY NOT NULL,
	`first` integer NOT NULL,
	`last` integer NOT NULL,
	`events` integer NOT NULL,
	`accepted_at` integer NOT NULL,
	`raw_bytes` integer NOT NULL,
	`scopes` text,
	`types` text,
	`statuses` text,
	`hashes` blob,
	`data` blob NOT NULL
);
