"""What the host of the workers declares is imported with its tasks."""

from tests.workers.model import declare

declare()
