CREATE INDEX `scopes_open` ON `scopes` (`open`) WHERE "open" > 0;--> statement-breakpoint
CREATE INDEX `scopes_parked` ON `scopes` (`parked`) WHERE parked > 0;