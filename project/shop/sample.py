"""Sixty orders of six customers, the same each time for the same day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.contrib.auth.models import AbstractBaseUser

from project.shop.models import Customer, Order, OrderEvent, OrderLine

CUSTOMERS = ["Alice Moreno", "Bruno Keller", "Chen Wei", "Dana Osei", "Emil Novak", "Farah Haddad"]
ALICE, OTHERS = CUSTOMERS[0], CUSTOMERS[1:]
ALICES_NUMBERS = {1008, 1023, 1042, 1043}
NUMBERS = range(1001, 1061)
CARRIERS = ["Swift Parcel", "Blue Post"]
PRODUCTS = {  # cents
    "Paper lantern, large": 3450,
    "Brass desk lamp": 8495,
    "Reading light, clip-on": 2990,
    "Garden string lights, 10 m": 4275,
    "Floor lamp, oak": 18900,
    "LED bulb, warm white": 495,
}
DELIVERY_DAYS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an order is to be; everything else follows from its number and its age."""

    number: int
    age_days: int
    customer: str
    lines: list[tuple[str, int, int]]  # product, quantity, cents each
    status: Order.Status


def plans() -> list[Plan]:
    """The orders, oldest first. 1042 has been delivered and 1043 is on its way: both are alice's."""
    return [_special(number) or _ordinary(number) for number in NUMBERS]


def _special(number: int) -> Plan | None:
    if number == 1042:
        lines = [_line("Brass desk lamp"), _line("LED bulb, warm white")]
        return Plan(number=number, age_days=7, customer=ALICE, lines=lines, status=Order.Status.DELIVERED)
    if number == 1043:
        lines = [_line("Garden string lights, 10 m", 2)]
        return Plan(number=number, age_days=3, customer=ALICE, lines=lines, status=Order.Status.SHIPPED)
    return None


def _ordinary(number: int) -> Plan:
    # Nothing is younger than a day, so that no event of any order lies in the future.
    age_days = 1 + (NUMBERS[-1] - number) // 8 if number > 1043 else 8 + (1041 - number)
    return Plan(
        number=number,
        age_days=age_days,
        customer=ALICE if number in ALICES_NUMBERS else OTHERS[number % len(OTHERS)],
        lines=[_line(list(PRODUCTS)[number * 7 % len(PRODUCTS)], 1 + number % 3)],
        status=_status(number, age_days),
    )


def _line(product: str, quantity: int = 1) -> tuple[str, int, int]:
    return product, quantity, PRODUCTS[product]


def _status(number: int, age_days: int) -> Order.Status:
    if number % 19 == 0:
        return Order.Status.CANCELLED
    if age_days > DELIVERY_DAYS:
        return Order.Status.DELIVERED
    return {1: Order.Status.PLACED, 2: Order.Status.PACKED}.get(age_days, Order.Status.SHIPPED)


def fill(today: date, *, alice: AbstractBaseUser | None) -> int:
    """Make the orders that are not there yet, and say how many that were; what is there stays as it is."""
    customers = {name: _customer(name) for name in CUSTOMERS}
    if alice is not None and customers[ALICE].account_id is None:
        Customer.objects.filter(name=ALICE).update(account=alice)
    there = set(Order.objects.filter(number__in=NUMBERS).values_list("number", flat=True))
    missing = [plan for plan in plans() if plan.number not in there]
    for plan in missing:
        _make(plan, customers[plan.customer], today=today)
    return len(missing)


def _customer(name: str) -> Customer:
    email = f"{name.split()[0].lower()}@lantern.example"
    return Customer.objects.get_or_create(name=name, defaults={"email": email})[0]


def _make(plan: Plan, customer: Customer, *, today: date) -> None:
    placed = today - timedelta(days=plan.age_days)
    sent = plan.status in {Order.Status.SHIPPED, Order.Status.DELIVERED}
    delivered = placed + timedelta(days=DELIVERY_DAYS) if plan.status == Order.Status.DELIVERED else None
    order = Order.objects.create(
        number=plan.number,
        customer=customer,
        status=plan.status,
        placed_on=placed,
        expected_on=None if plan.status == Order.Status.CANCELLED else placed + timedelta(days=DELIVERY_DAYS),
        delivered_on=delivered,
        carrier=CARRIERS[plan.number % 2] if sent else "",
        tracking_code=f"LL{plan.number * 7919:08d}" if sent else "",
        card_ending=f"{4200 + plan.number % 100:04d}",
    )
    OrderLine.objects.bulk_create(
        OrderLine(order=order, product=product, quantity=quantity, unit_cents=cents)
        for product, quantity, cents in plan.lines
    )
    OrderEvent.objects.bulk_create(
        OrderEvent(order=order, at=at, text=text) for at, text in _events(plan, order, placed=placed)
    )


def _events(plan: Plan, order: Order, *, placed: date) -> list[tuple[datetime, str]]:
    story = [(0, time(9, 12), "order placed and paid")]
    if plan.status == Order.Status.CANCELLED:
        return [_at(placed, *event) for event in [*story, (0, time(17, 40), "cancelled by the customer")]]
    if plan.status != Order.Status.PLACED:
        story.append((1, time(11, 5), "packed in our workshop"))
    if order.carrier:
        story.append((1, time(16, 30), f"handed over to {order.carrier}"))
        story.append((2, time(6, 45), "sorted in the regional depot"))
    if order.delivered_on:
        story.append((DELIVERY_DAYS, time(14, 10), "delivered and left at the reception"))
    return [_at(placed, *event) for event in story]


def _at(placed: date, days: int, clock: time, text: str) -> tuple[datetime, str]:
    return datetime.combine(placed + timedelta(days=days), clock, tzinfo=UTC), text
