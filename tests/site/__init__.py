"""The host site of the tests."""
