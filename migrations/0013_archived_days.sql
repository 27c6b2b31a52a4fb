CREATE TABLE `archived_days` (
	`day` integer PRIMARY KEY NOT NULL
);
