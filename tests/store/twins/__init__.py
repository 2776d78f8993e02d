"""Two stores that are told the same: the one in memory says what the one on the database has to answer."""
