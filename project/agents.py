"""The demo's agent: the support desk of a small lamp shop, which reads its orders and cancels them when it may."""

from __future__ import annotations

from datetime import date, datetime
from typing import Protocol

from pydantic import BaseModel, Field

from agent import Confirm, Preflight, Presentation, ToolContext, ToolError, agent, denied, ready, tool
from project.shop.models import Order, OrderQuerySet

STAFF = {"staff", "superuser"}
MOST_ORDERS = 20

PROMPT = """\
You are the support desk of Lantern Lane, a small shop for lamps.
Answer from the shop's own records, which you read with your tools; never guess a status, a date or an amount.
Say what is asked first, in one or two short sentences, then what may help next.
A customer sees only their own orders. If an order cannot be found, say so and ask for the number again.
You can cancel an order that has not been delivered; the customer is asked before it happens, so do not ask yourself.
You can ask for the refund of a delivered order; a colleague approves it, and the customer is told here when it is done.
You cannot change anything else: for a new address, say that a colleague will do it.
"""


class Event(BaseModel):
    at: datetime
    text: str


class Line(BaseModel):
    quantity: int
    product: str
    price: str


class OrderNumber(Protocol):
    number: int


class OrderCard(BaseModel):
    """An order as the agent reads it out."""

    number: int
    customer: str
    status: str
    placed_on: date
    expected_on: date | None = None
    delivered_on: date | None = None
    carrier: str = ""
    tracking_code: str = ""
    total: str
    lines: list[Line] = Field(default_factory=list)
    last_event: Event | None = None


class OrderList(BaseModel):
    customer: str
    orders: list[OrderCard]
    more: bool = False


class OrderHistory(BaseModel):
    number: int
    status: str
    events: list[Event]


def _dollars(cents: int) -> str:
    return f"${cents // 100:,}.{cents % 100:02}"


def _card(order: Order) -> OrderCard:
    events = list(order.events.all())
    return OrderCard(
        number=order.number,
        customer=order.customer.name,
        status=order.get_status_display(),
        placed_on=order.placed_on,
        expected_on=order.expected_on,
        delivered_on=order.delivered_on,
        carrier=order.carrier,
        tracking_code=order.tracking_code,
        total=_dollars(order.total_cents),
        lines=[
            Line(quantity=line.quantity, product=line.product, price=_dollars(line.unit_cents))
            for line in order.lines.all()
        ],
        last_event=Event(at=events[-1].at, text=events[-1].text) if events else None,
    )


def _is_staff(ctx: ToolContext) -> bool:
    return bool(STAFF & set(ctx.actor.roles))


def _readable(ctx: ToolContext) -> OrderQuerySet:
    """The orders that the person in this conversation may hear about: their own, or any for the shop's staff."""
    orders = Order.objects.complete()
    return orders if _is_staff(ctx) else orders.of_account(ctx.actor.ref)


def _order(ctx: ToolContext, number: int) -> Order:
    order = _readable(ctx).filter(number=number).first()
    if order is None:
        # One sentence for "is not there" and "is somebody else's": the difference is nobody's business.
        raise ToolError(f"There is no order {number} on this account.")
    return order


def _order_in_short(asked: BaseModel, order: OrderCard) -> Presentation:
    items = sum(line.quantity for line in order.lines)
    return Presentation(text=f"Order {order.number}: {order.status}, {_counted(items, 'item')}, {order.total}")


def _orders_in_short(asked: BaseModel, found: OrderList) -> Presentation:
    return Presentation(text=f"{_counted(len(found.orders), 'order')} of {found.customer}")


def _history_in_short(asked: BaseModel, history: OrderHistory) -> Presentation:
    return Presentation(text=f"Order {history.number}: {_counted(len(history.events), 'entry', 'entries')}")


def _counted(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one if count == 1 else more or f'{one}s'}"


@tool(present=_order_in_short)
def look_up_order(ctx: ToolContext, number: int) -> OrderCard:
    """One order by its number: status, dates, carrier, what is in it and what it cost."""
    return _card(_order(ctx, number))


@tool(present=_orders_in_short)
def list_customer_orders(ctx: ToolContext, customer: str | None = None) -> OrderList:
    """The newest orders of the customer who is asking; staff may name another customer."""
    readable = _readable(ctx)
    orders = readable.of_customer(customer) if customer else readable.of_account(ctx.actor.ref)
    found = list(orders[: MOST_ORDERS + 1])
    if not found:
        raise ToolError(
            f"There are no orders of {customer} to see here." if customer else "This account has no orders."
        )
    names = sorted({order.customer.name for order in found})
    return OrderList(
        customer=", ".join(names), orders=[_card(order) for order in found[:MOST_ORDERS]], more=len(found) > MOST_ORDERS
    )


@tool(present=_history_in_short)
def order_history(ctx: ToolContext, number: int) -> OrderHistory:
    """Everything that has happened to one order, oldest first."""
    order = _order(ctx, number)
    events = [Event(at=event.at, text=event.text) for event in order.events.all()]
    return OrderHistory(number=order.number, status=order.get_status_display(), events=events)


def _cancellable(asked: OrderNumber, ctx: ToolContext, phase: str) -> Preflight:
    """Asked before the customer is, and again before it happens: the parcel may arrive in between."""
    order = Order.objects.of_account(ctx.actor.ref).filter(number=asked.number).first()
    if order is None:
        return denied(f"There is no order {asked.number} on this account.")
    if not order.is_open:
        return denied(f"Order {order.number} is {order.get_status_display()} and cannot be cancelled any more.")
    way = "The parcel is called back." if order.status == Order.Status.SHIPPED else "It is not sent."
    detail = f"{way} {_dollars(order.total_cents)} are paid back. This cannot be undone."
    return ready(Confirm(f"Cancel order {order.number}?", "Cancel the order", detail))


@tool(kind="action", preflight=_cancellable)
def cancel_order(ctx: ToolContext, number: int) -> dict[str, int]:
    """Cancel an order of the customer who is asking; they are asked to confirm it first."""
    order = Order.objects.of_account(ctx.actor.ref).get(number=number)
    order.cancel("Cancelled at the customer's request.")  # a repeat finds it cancelled
    return {"cancelled": number}


def _refundable(asked: OrderNumber, ctx: ToolContext, phase: str) -> Preflight:
    """Asked before a colleague is, and again right before it happens."""
    order = Order.objects.of_account(ctx.actor.ref).filter(number=asked.number).first()
    if order is None:
        return denied(f"There is no order {asked.number} on this account.")
    if order.refund_key == ctx.idempotency_key:
        return ready()  # this very refund, whose worker was lost before it could say so
    if order.status != Order.Status.DELIVERED:
        return denied(f"Order {order.number} is {order.get_status_display()}: only a delivered order is paid back.")
    detail = f"{_dollars(order.total_cents)} are paid back to the card ending in {order.card_ending}."
    return ready(Confirm(f"Refund order {order.number}", "Refund", detail))


def _refunded_in_short(asked: OrderNumber, done: dict[str, object]) -> Presentation:
    return Presentation(text=f"Order {asked.number} is refunded: {done['refunded']} are on their way back to the card.")


@tool(
    kind="action",
    approval_mode="independent",
    approver="role:lead",
    preflight=_refundable,
    present=_refunded_in_short,
    replacement_key=lambda asked: str(asked.number),
)
def refund_order(ctx: ToolContext, number: int) -> dict[str, object]:
    """Pay a delivered order of the customer who is asking back; the support lead approves it first."""
    order = Order.objects.of_account(ctx.actor.ref).get(number=number)
    if not order.refund(ctx.idempotency_key):
        raise ToolError(f"Order {number} was refunded before.")
    return {"number": number, "refunded": _dollars(order.total_cents)}


@agent(
    name="stylist",
    label="Stylist",
    description="Knows which lamps, shades and bulbs go together.",
    prompt="You are the stylist of a lamp shop. Look the order up, then say in two sentences what goes with it.",
    tools=[look_up_order],
)
class Stylist:
    """Asked by the support desk about taste."""


@agent(
    name="shop",
    label="Lantern Lane support",
    description="Ask where an order is, what was in it, or what you have ordered so far.",
    prompt=PROMPT,
    tools=[look_up_order, list_customer_orders, order_history, cancel_order, refund_order],
    handoffs=["stylist"],
    allow_ask=True,
)
class Shop:
    """The support desk."""
