"""Who acts: a value, not a user row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent.domain.text import is_exact
from agent.errors import Invalid

REF_MAX = 255


@dataclass(frozen=True, slots=True)
class Actor:
    """`ref` is 1 to 255 characters, `tenant_ref` at most 255; an empty tenant is a tenant of its own, None is none."""

    ref: str
    roles: tuple[str, ...] = ()
    tenant_ref: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.ref) <= REF_MAX or not is_exact(self.ref):
            raise Invalid.field("ref", f"1 to {REF_MAX} characters, without NUL")
        if self.tenant_ref is not None and (len(self.tenant_ref) > REF_MAX or not is_exact(self.tenant_ref)):
            raise Invalid.field("tenantRef", f"at most {REF_MAX} characters, without NUL")

    def same_as(self, other: Owner | Actor) -> bool:
        """Same ref and same tenant; no tenant equals no tenant only."""
        return self.ref == other.ref and self.tenant_ref == other.tenant_ref

    def to_json(self) -> dict[str, Any]:
        return {"ref": self.ref, "roles": list(self.roles), "tenantRef": self.tenant_ref}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Actor:
        return cls(value["ref"], tuple(value.get("roles") or ()), value.get("tenantRef"))


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a row is."""

    ref: str
    tenant_ref: str | None
