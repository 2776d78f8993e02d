"""The test site under a real server: an agent whose model can be held by the test."""
