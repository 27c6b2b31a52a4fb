ALTER TABLE `log` ADD `chain` blob;--> statement-breakpoint
ALTER TABLE `log` ADD `head` text;