"""Customers and what they ordered. Money is integer cents."""

from __future__ import annotations

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone


class Customer(models.Model):
    """Somebody who buys; `account` is the login of those who have one."""

    name = models.CharField(max_length=120, unique=True)
    email = models.EmailField(blank=True)
    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="customer"
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class OrderQuerySet(models.QuerySet["Order"]):
    def of_account(self, account: str) -> OrderQuerySet:
        """The orders of the customer who signs in as this user; nobody's for a name that is no user's key."""
        return self.filter(customer__account_id=int(account)) if account.isdecimal() else self.none()

    def of_customer(self, name: str) -> OrderQuerySet:
        """The orders of customers whose name contains these words."""
        return self.filter(customer__name__icontains=name)

    def open(self) -> OrderQuerySet:
        """Those that can still be cancelled."""
        return self.exclude(status__in=Order.OVER)

    def complete(self) -> OrderQuerySet:
        """With everything an answer needs, in three queries however many orders there are."""
        return self.select_related("customer").prefetch_related("lines", "events")


class Order(models.Model):
    class Status(models.TextChoices):
        PLACED = "placed", "placed"
        PACKED = "packed", "packed"
        SHIPPED = "shipped", "on its way"
        DELIVERED = "delivered", "delivered"
        CANCELLED = "cancelled", "cancelled"
        REFUNDED = "refunded", "refunded"

    OVER = (Status.DELIVERED, Status.CANCELLED, Status.REFUNDED)

    number = models.PositiveIntegerField(unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PLACED)
    placed_on = models.DateField()
    expected_on = models.DateField(null=True, blank=True)
    delivered_on = models.DateField(null=True, blank=True)
    carrier = models.CharField(max_length=60, blank=True)
    tracking_code = models.CharField(max_length=40, blank=True)
    card_ending = models.CharField(max_length=4, blank=True)
    refund_key = models.CharField(max_length=200, blank=True, editable=False)  # under which it was paid back

    objects = OrderQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"Order {self.number}"

    @property
    def is_open(self) -> bool:
        return self.status not in self.OVER

    def cancel(self, why: str) -> bool:
        """Cancel an open order; once, however often it is asked."""
        with transaction.atomic():
            open_orders = Order.objects.open().filter(pk=self.pk)
            cancelled = open_orders.update(status=Order.Status.CANCELLED, expected_on=None) == 1
            if cancelled:
                self.events.create(at=timezone.now(), text=why)
        return cancelled

    def refund(self, key: str) -> bool:
        """Pay a delivered order back: once, and the same key again changes nothing; False for another key."""
        with transaction.atomic():
            delivered = Order.objects.filter(pk=self.pk, status=Order.Status.DELIVERED)
            if delivered.update(status=Order.Status.REFUNDED, refund_key=key) == 1:
                self.events.create(at=timezone.now(), text="Refunded with the approval of the support lead")
                return True
        return Order.objects.filter(pk=self.pk, refund_key=key).exists()

    @property
    def total_cents(self) -> int:
        return sum(line.quantity * line.unit_cents for line in self.lines.all())


class OrderLine(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.CharField(max_length=120)
    quantity = models.PositiveSmallIntegerField(default=1)
    unit_cents = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.product}"


class OrderEvent(models.Model):
    """Something that happened to an order, in the words the customer reads."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    text = models.CharField(max_length=200)

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return self.text
