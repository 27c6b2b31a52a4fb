ALTER TABLE `scopes` ADD `model_answered_at` integer;--> statement-breakpoint
ALTER TABLE `scopes` ADD `model_failing_since` integer;--> statement-breakpoint
ALTER TABLE `scopes` ADD `model_failures` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `scopes` ADD `model_error` text;--> statement-breakpoint
ALTER TABLE `scopes` ADD `model_ask_at` integer;--> statement-breakpoint
CREATE INDEX `scopes_model_failing` ON `scopes` (`model_failing_since`) WHERE model_failing_since IS NOT NULL;