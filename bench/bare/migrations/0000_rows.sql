CREATE TABLE rows (
	id text PRIMARY KEY NOT NULL,
	scope text NOT NULL,
	type text NOT NULL,
	source text NOT NULL,
	timestamp text NOT NULL,
	payload text NOT NULL
);
