"""A host whose people sign in by e-mail, have a UUID for a primary key, and neither groups nor staff."""
