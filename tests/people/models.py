"""The host's own user model."""

from __future__ import annotations

import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models


class People(BaseUserManager["Person"]):
    def create_user(self, email: str, password: str) -> Person:
        person = self.model(email=email)
        person.set_password(password)
        person.save(using=self._db)
        return person


class Person(AbstractBaseUser):
    """Known by an address; may do what its list of permissions says."""

    reference = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    may = models.CharField(max_length=200, default="")

    objects = People()
    USERNAME_FIELD = "email"

    def has_perm(self, permission: str, obj: object = None) -> bool:
        return self.is_active and permission in self.may.split()
