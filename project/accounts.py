"""The people of the demo."""

from __future__ import annotations

from dataclasses import dataclass

PASSWORD = "demo"  # noqa: S105  the demo's is public, and refused outside DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    full_name: str
    does: str
    staff: bool = False
    superuser: bool = False
    groups: tuple[str, ...] = ()  # which are the roles of who signs in
    permissions: tuple[str, ...] = ()  # given as soon as the app that declares them is installed

    @property
    def email(self) -> str:
        return f"{self.name}@lantern.example"


READS_ORDERS = ("shop.view_order", "shop.view_customer")
ACCOUNTS = (
    Account(name="alice", full_name="Alice Moreno", does="a customer"),
    Account(
        name="lead",
        full_name="Lena Brandt",
        does="support lead, approves",
        staff=True,
        groups=("lead",),
        permissions=("agent.view_actionproposal", "agent.decide_actionproposal", *READS_ORDERS),
    ),
    Account(
        name="finance",
        full_name="Femi Adeyemi",
        does="finance, reads spend",
        staff=True,
        permissions=("governance.view_spend", "governance.export_governance", "agent.view_modelprice"),
    ),
    Account(name="admin", full_name="Ada Marsh", does="may do everything", staff=True, superuser=True),
)
