ALTER TABLE `events` ADD `happened_at` integer;--> statement-breakpoint
CREATE INDEX `events_happened` ON `events` (`happened_at`) WHERE happened_at IS NOT NULL;